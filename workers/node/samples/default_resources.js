/**
 * `default-resources`: adds the operator's requests and limits to containers and init containers that lack them.
 *
 * "If a limit is specified, but no request, ... the request defaults to the limit", and "a request must be less than or
 * equal to the limit" (Kubernetes). So a default that would make a request exceed a limit is not set, and the user gets
 * a warning. Containers whose resources an UPDATE does not change stay as they are (those of Pods and Jobs are
 * immutable), and so do Pods with resources of their own (`spec.resources`), which their containers share.
 */

import { isDeepStrictEqual } from 'node:util';
import { entries, jsonOf, patch, pointer, SettingsError } from 'admission-worker';
import { isEmpty, isObject, member } from './members.js';
import { claims, containers, PATHS, pathOf, places, RUNNING, specOf } from './pod_specs.js';
import { QuantityError, quantity } from './quantities.js';
import { worker } from './sample_worker.js';

/** @typedef {Record<string, string | number>} Quantities by resource */
/** @typedef {Record<'requests' | 'limits', Record<string, string>>} Added */

/**
 * Settings of default-resources.
 *
 * @typedef {object} DefaultResources
 * @property {Quantities} requests the default request of each resource, such as `{ cpu: '100m', memory: '128Mi' }`
 * @property {Quantities} limits the default limit of each resource; none below its default request
 */

/** Resources whose request may be below the limit. Not huge pages and extended ones: "you cannot overcommit". */
const QUANTITIES = {
  type: 'object',
  propertyNames: { enum: ['cpu', 'memory', 'ephemeral-storage'] },
  additionalProperties: { type: ['string', 'number'] },
  default: {},
};

const SETTINGS = {
  type: 'object',
  properties: { requests: QUANTITIES, limits: QUANTITIES },
  additionalProperties: false,
};

/**
 * Report values that are no quantity, are negative, or contradict the other default.
 *
 * @param {DefaultResources} settings
 */
function* validate({ requests, limits }) {
  const values = { requests: new Map(), limits: new Map() };
  for (const [kind, defaults] of /** @type {const} */ ([
    ['requests', requests],
    ['limits', limits],
  ])) {
    for (const [name] of entries(defaults)) {
      const written = shown(defaults, name);
      try {
        values[kind].set(name, quantity(written));
      } catch (error) {
        if (!(error instanceof QuantityError)) throw error;
        yield new SettingsError(pointer(kind, name), error.message);
        continue;
      }
      if (values[kind].get(name) < 0n) {
        yield new SettingsError(pointer(kind, name), `must not be negative, is ${written}`);
      }
    }
  }
  for (const [name, value] of values.requests) {
    if (value <= (values.limits.get(name) ?? value)) continue;
    const message = `the default request ${shown(requests, name)} exceeds the default limit ${shown(limits, name)}`;
    yield new SettingsError(pointer('requests', name), message);
  }
}

worker.mutating(
  'default-resources',
  {
    description: 'Adds requests and limits that containers lack.',
    settings: SETTINGS,
    validate,
    inputs: [...claims(RUNNING, ['name', 'resources']), ...PATHS.map(path => pointer('object', ...path, 'resources'))],
    writes: places(RUNNING, 'resources'),
  },
  defaultResources,
);

/**
 * @param {import('admission-worker').Request} request
 * @param {DefaultResources} settings
 */
function defaultResources(request, settings) {
  const path = pathOf(request);
  if (path === undefined || !['CREATE', 'UPDATE'].includes(request.operation ?? '')) return undefined;
  if (!isEmpty(member(specOf(request.object, path), 'resources'))) return undefined;
  /** @type {import('admission-worker').Operation[]} */
  const operations = [];
  /** @type {string[]} */
  const warnings = [];
  for (const container of containers(request, RUNNING)) {
    const now = member(container.value, 'resources');
    if (container.before !== undefined && isUntouched(member(container.before, 'resources'), now)) continue;
    const added = missing(container.field, isObject(now) ? now : {}, settings, warnings);
    operations.push(...operationsOf(container, now, added));
  }
  return patch(operations, { warnings });
}

/**
 * @param {unknown} before
 * @param {unknown} now
 */
function isUntouched(before, now) {
  return isDeepStrictEqual(isEmpty(before) ? {} : before, isEmpty(now) ? {} : now);
}

/**
 * The defaults that a container lacks; one that contradicts its other value becomes a warning.
 *
 * @param {string} field
 * @param {Record<string, unknown>} resources
 * @param {DefaultResources} settings
 * @param {string[]} warnings
 * @returns {Added}
 */
function missing(field, resources, settings, warnings) {
  const requests = valuesOf(resources, 'requests');
  const limits = valuesOf(resources, 'limits');
  /** @type {Added} */
  const added = { requests: {}, limits: {} };
  for (const [name] of entries(settings.requests)) {
    if (Object.hasOwn(requests, name)) continue;
    const written = shown(settings.requests, name);
    if (!Object.hasOwn(limits, name) || fits(settings.requests, limits, name)) added.requests[name] = written;
    else
      warnings.push(`${field}: default ${name} request ${written} exceeds its limit ${shown(limits, name)}: not set`);
  }
  for (const [name] of entries(settings.limits)) {
    if (Object.hasOwn(limits, name)) continue;
    const written = shown(settings.limits, name);
    if (!Object.hasOwn(requests, name) || fits(requests, settings.limits, name)) added.limits[name] = written;
    else
      warnings.push(
        `${field}: default ${name} limit ${written} is below its request ${shown(requests, name)}: not set`,
      );
  }
  return added;
}

/**
 * The JSON Patch that adds them, with missing parent objects.
 *
 * @param {import('./pod_specs.js').Container} container
 * @param {unknown} now
 * @param {Added} added
 * @returns {import('admission-worker').Operation[]}
 */
function operationsOf(container, now, added) {
  const wanted = Object.entries(added).filter(([, values]) => !isEmpty(values));
  if (wanted.length === 0) return [];
  if (!isObject(now)) {
    return [{ op: 'add', path: container.pointer('resources'), value: Object.fromEntries(wanted) }];
  }
  /** @type {import('admission-worker').Operation[]} */
  const operations = [];
  for (const [kind, values] of wanted) {
    const path = container.pointer('resources', kind);
    if (!isObject(member(now, kind))) operations.push({ op: 'add', path, value: values });
    else
      for (const [name, value] of Object.entries(values))
        operations.push({ op: 'add', path: path + pointer(name), value });
  }
  return operations;
}

/**
 * @param {Record<string, unknown>} resources
 * @param {string} kind
 * @returns {Record<string, unknown>}
 */
function valuesOf(resources, kind) {
  const found = member(resources, kind);
  return isObject(found) ? found : {};
}

/**
 * Whether a request does not exceed a limit. False for an invalid quantity, which the API server rejects.
 *
 * @param {Record<string, unknown>} requests
 * @param {Record<string, unknown>} limits
 * @param {string} name
 */
function fits(requests, limits, name) {
  try {
    return quantity(shown(requests, name)) <= quantity(shown(limits, name));
  } catch (error) {
    if (error instanceof QuantityError) return false;
    throw error;
  }
}

/**
 * A quantity as it is written in JSON, a text or a number.
 *
 * @param {Record<string, unknown>} quantities
 * @param {string} name
 * @returns {string}
 */
function shown(quantities, name) {
  const written = quantities[name];
  return typeof written === 'string' ? written : jsonOf(quantities, name);
}
