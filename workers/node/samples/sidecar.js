/**
 * `sidecar`: adds a container to each new Pod, once.
 *
 * A container with `restartPolicy: Always` is a sidecar as Kubernetes defines it, and is appended to the init
 * containers; any other to the containers. Only on CREATE, since a Pod's containers are immutable. It is not added:
 *
 * - where a container of that name exists, so that a second run changes nothing (names are unique over all of a Pod's
 *   containers; if an ordinary init container has the name, the user gets a warning);
 * - to mirror Pods, which the kubelet makes from files: the API server cannot change what they run;
 * - where the Pod's annotation says `false`.
 */

import { allow, patch, SettingsError } from 'admission-worker';
import { member, text } from './members.js';
import { specOf } from './pod_specs.js';
import { worker } from './sample_worker.js';

const MIRROR = 'kubernetes.io/config.mirror';

/**
 * Settings of sidecar.
 *
 * @typedef {object} Sidecar
 * @property {Record<string, unknown>} container a v1 Container; what it mounts must exist in the Pods
 * @property {string} annotation the key of a Pod's annotation which, with the value `false`, keeps the sidecar out
 */

const SETTINGS = {
  type: 'object',
  properties: {
    container: { type: 'object' },
    annotation: { type: 'string', default: 'sidecar.admission-gateway.dev/inject' },
  },
  required: ['container'],
  additionalProperties: false,
};

/**
 * Report missing fields that every container needs, and a wrong restartPolicy.
 *
 * @param {Sidecar} settings
 */
function* validate({ container }) {
  for (const name of ['name', 'image']) {
    if (!text(member(container, name))) {
      yield new SettingsError(`/container/${name}`, 'Required value: a text that is not empty');
    }
  }
  if (Object.hasOwn(container, 'restartPolicy') && container.restartPolicy !== 'Always') {
    const message = 'must be Always (a sidecar that init containers can use) or absent';
    yield new SettingsError('/container/restartPolicy', message);
  }
}

worker.mutating(
  'sidecar',
  {
    description: 'Adds a container to each Pod that is created.',
    settings: SETTINGS,
    validate,
    inputs: [
      '/object/metadata/annotations',
      '/object/spec/containers/*/name',
      '/object/spec/initContainers/*/name',
      '/object/spec/initContainers/*/restartPolicy',
    ],
    writes: ['/spec/containers', '/spec/initContainers'],
  },
  sidecar,
);

/**
 * @param {import('admission-worker').Request} request
 * @param {Sidecar} settings
 */
function sidecar(request, { container, annotation }) {
  if (request.operation !== 'CREATE' || request.subResource || !isPod(request)) return undefined;
  const annotations = specOf(request.object, ['metadata', 'annotations']);
  if (Object.hasOwn(annotations, MIRROR) || member(annotations, annotation) === 'false') return undefined;
  const spec = specOf(request.object, ['spec']);
  const name = text(container.name);
  if (named(spec, 'containers', name)) return undefined;
  const same = named(spec, 'initContainers', name);
  if (same) {
    if (member(same, 'restartPolicy') === 'Always') return undefined;
    return allow({ warnings: [`sidecar ${JSON.stringify(name)} is not added: an init container has its name`] });
  }
  const list = Object.hasOwn(container, 'restartPolicy') ? 'initContainers' : 'containers';
  const isThere = Array.isArray(member(spec, list));
  const path = isThere ? `/spec/${list}/-` : `/spec/${list}`;
  return patch([{ op: 'add', path, value: isThere ? container : [container] }]);
}

/** @param {import('admission-worker').Request} request */
function isPod({ object, kind }) {
  return object !== undefined && kind?.group === '' && kind.kind === 'Pod';
}

/**
 * @param {Record<string, unknown>} spec
 * @param {string} list
 * @param {string} name
 * @returns {Record<string, unknown> | undefined}
 */
function named(spec, list, name) {
  const found = member(spec, list);
  return Array.isArray(found) ? found.find(container => member(container, 'name') === name) : undefined;
}
