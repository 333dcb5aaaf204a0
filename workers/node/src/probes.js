/**
 * The probe policies of the conformance kit, for `--conformance`: each checks one duty of a worker. They are not for
 * production. `workers/README.md` describes them.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { allow, deny, fail, merge, mutated, NO_STORE, patch } from './answers.js';
import { EVERYTHING } from './claims.js';
import { jsonOf } from './encoding.js';
import { RegistrationError, SettingsError, SettingsWarning } from './errors.js';
import { Policy } from './policies.js';
import { currentTraceparent } from './tracing.js';

/** Tokens of cancelled sleeps that are stored, as `workers/README.md` specifies. */
const REMEMBERED = 1000;

/** @type {import('./changes.js').Operation[]} */
const ANNOTATED = [{ op: 'add', path: '/metadata/annotations', value: { probe: 'patched' } }];

const LABELS = '/object/metadata/labels';

/**
 * A worker's policies and the probes.
 *
 * @param {ReadonlyMap<string, Policy>} policies
 * @returns {Map<string, Policy>}
 * @throws {RegistrationError} a policy has the name of a probe
 */
export function withProbes(policies) {
  const all = new Map(policies);
  for (const probe of probes()) {
    if (all.has(probe.name)) throw new RegistrationError(`policy ${probe.name}: the name is a probe's (--conformance)`);
    all.set(probe.name, probe);
  }
  return all;
}

function probes() {
  return [
    new Policy('probe-answer', 'mutating', { settings: ANSWER_SETTINGS }, answers),
    new Policy('probe-misuse', 'validating', {}, () => patch(ANNOTATED)),
    new Policy('probe-echo', 'validating', { inputs: EVERYTHING }, echoes),
    ...sleepers(),
    new Policy('probe-panic', 'validating', { inputs: [] }, () => {
      throw new Error('a secret that must not travel');
    }),
    new Policy(
      'probe-flood',
      'validating',
      { inputs: [], settings: FLOOD_SETTINGS },
      (/** @type {unknown} */ _, /** @type {any} */ { bytes }) => deny('x'.repeat(bytes)),
    ),
    new Policy('probe-settings', 'validating', { inputs: [], settings: ODD_SETTINGS, validate: isOdd }, () => allow()),
    new Policy('probe-label', 'mutating', { inputs: [LABELS], writes: ['/metadata/labels'] }, labels),
    new Policy('probe-version', 'validating', { inputs: [], version: 'probe-7' }, () => allow()),
  ];
}

const ANSWER_SETTINGS = {
  type: 'object',
  properties: {
    arm: { enum: ['allow', 'nothing', 'deny', 'deny-plainly', 'patch', 'merge', 'mutated', 'fail'] },
    warnings: { type: 'array', items: { type: 'string' } },
    auditAnnotations: { type: 'object', additionalProperties: { type: 'string' } },
    cache: { anyOf: [{ const: 'no-store' }, { type: 'number' }] },
  },
  required: ['arm'],
  additionalProperties: false,
};

const FLOOD_SETTINGS = {
  type: 'object',
  properties: { bytes: { type: 'integer', minimum: 0 } },
  required: ['bytes'],
  additionalProperties: false,
};

const ODD_SETTINGS = {
  type: 'object',
  properties: { odd: { type: 'integer' }, name: { type: 'string' }, deprecated: { type: 'boolean' } },
  required: ['odd'],
  additionalProperties: false,
};

const SLEEP_SETTINGS = {
  type: 'object',
  properties: { seconds: { type: 'number', minimum: 0 }, token: { type: 'string' } },
  required: ['seconds', 'token'],
  additionalProperties: false,
};

const TOKEN_SETTINGS = {
  type: 'object',
  properties: { token: { type: 'string' } },
  required: ['token'],
  additionalProperties: false,
};

/**
 * @param {import('./request.js').Request} request
 * @param {any} settings
 */
function answers(request, { arm, warnings, auditAnnotations, cache }) {
  const options = { warnings, auditAnnotations, cache: cache === 'no-store' ? NO_STORE : cache };
  switch (arm) {
    case 'allow':
      return allow(options);
    case 'nothing':
      return undefined;
    case 'deny':
      return deny('denied by the probe', {
        code: 409,
        causes: [{ field: 'spec.probe', message: 'a cause', reason: 'FieldValueInvalid' }],
        details: { name: 'probe', group: 'probes.example.com', kind: 'Probe', uid: 'probe-uid', retryAfterSeconds: 7 },
        ...options,
      });
    case 'deny-plainly':
      return deny('denied', options);
    case 'patch':
      return patch(ANNOTATED, options);
    case 'merge':
      return merge({ metadata: { annotations: { probe: 'merged' } } }, options);
    case 'mutated':
      return request.object ? mutated(annotated(request.object), options) : fail('there is no object to mutate');
    default:
      return fail('failed by the probe');
  }
}

/** @param {any} object as it was sent; its other annotations stay */
function annotated(object) {
  object.metadata ??= {};
  object.metadata.annotations ??= {};
  object.metadata.annotations.probe = 'mutated';
  return object;
}

/** @param {import('./request.js').Request} request */
function echoes(request) {
  const auditAnnotations = { uid: request.uid, traceparent: currentTraceparent() };
  return deny(request.raw.toString(), { code: 422, auditAnnotations });
}

/** The two probes that share the tokens of cancelled sleeps. */
function sleepers() {
  /** @type {Set<string>} */
  const cancelled = new Set();
  /**
   * @param {import('./request.js').Request} request
   * @param {{ seconds: number, token: string }} settings
   */
  const sleeps = async ({ signal }, { seconds, token }) => {
    try {
      await sleep(seconds * 1000, undefined, { signal });
    } catch (error) {
      cancelled.add(token);
      const [oldest] = cancelled;
      if (cancelled.size > REMEMBERED) cancelled.delete(oldest);
      throw error;
    }
    return allow();
  };
  return [
    new Policy('probe-sleep', 'validating', { inputs: [], settings: SLEEP_SETTINGS }, sleeps),
    new Policy(
      'probe-cancelled',
      'validating',
      { inputs: [], settings: TOKEN_SETTINGS },
      (/** @type {unknown} */ _, /** @type {any} */ { token }) =>
        allow({ auditAnnotations: { cancelled: String(cancelled.has(token)) } }),
    ),
  ];
}

/** @param {{ odd: number, deprecated?: boolean }} settings */
function isOdd(settings) {
  const findings = [];
  const odd = jsonOf(settings, 'odd');
  if (/[02468](\.0+)?$/.test(odd)) findings.push(new SettingsError('/odd', `must be odd, is ${odd}`));
  if (settings.deprecated !== undefined) findings.push(new SettingsWarning('deprecated goes away'));
  return findings;
}

/** @param {import('./request.js').Request} request */
function labels({ object }) {
  if (object === undefined) return undefined;
  const found = object.metadata?.labels;
  if (object.metadata === undefined)
    return patch([{ op: 'add', path: '/metadata', value: { labels: { probe: 'yes' } } }]);
  if (typeof found !== 'object' || found === null) {
    return patch([{ op: 'add', path: '/metadata/labels', value: { probe: 'yes' } }]);
  }
  return Object.hasOwn(found, 'probe')
    ? undefined
    : patch([{ op: 'add', path: '/metadata/labels/probe', value: 'yes' }]);
}
