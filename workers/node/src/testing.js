/**
 * Test a policy without a server: a request and settings in, its answer out.
 *
 *     import { review } from 'admission-worker/testing';
 *
 *     test('an object without a team is denied', async () => {
 *       const request = { operation: 'CREATE', object: { metadata: {} } };
 *       assert.deepEqual(await review(worker, 'required-label', request, { key: 'team' }), deny('...'));
 *     });
 *
 * The policy is sent what the gateway would send it: no more than it claims as its `inputs`. So a policy that reads
 * what it does not claim fails its tests, and not its first day in a cluster. What a policy throws comes through.
 */

import { Cancellation } from './cancellation.js';
import { encoded } from './encoding.js';
import { accepted } from './outcomes.js';
import { documentOf } from './projection.js';
import { Document, Request } from './request.js';
import { isObject } from './values.js';

/**
 * What a policy answers to a request.
 *
 * @param {import('./worker.js').Worker} worker which holds the policy
 * @param {string} policy its name
 * @param {Readonly<Record<string, unknown>>} request an AdmissionRequest in its JSON shape, or the parts of it that
 *   matter; or a whole AdmissionReview, as recorded from a cluster
 * @param {Readonly<Record<string, unknown>>} [settings] as the operator would write them; default `{}`
 * @param {object} [options]
 * @param {AbortSignal} [options.signal] aborted when the caller waits no more: `request.signal` follows
 * @returns {Promise<import('./answers.js').Answer>} `answer.change.value` is a patch as it was given. Nothing of a
 *   policy is `allow()`
 * @throws {RangeError} the worker holds no such policy
 * @throws {import('./errors.js').InvalidSettingsError} all that is wrong with the settings
 * @throws {import('./errors.js').InvalidAnswerError} the policy returned what is no answer in its phase
 */
export async function review(worker, policy, request, settings = {}, { signal } = {}) {
  const held = worker.policies.get(policy);
  if (held === undefined) {
    const names = [...worker.policies.keys()].join(', ') || 'none';
    throw new RangeError(`worker ${worker.name} holds no policy ${JSON.stringify(policy)}; it holds: ${names}`);
  }
  const whole = isObject(request.request) ? request.request : request;
  const cancellation = new Cancellation();
  signal?.addEventListener('abort', () => cancellation.cancel('the test waits for it no longer'));
  if (signal?.aborted) cancellation.cancel('the test waits for it no longer');
  // Both take the way through JSON, as they will.
  const document = new Document(Buffer.from(encoded(documentOf(whole, held.inputs), 'request')));
  const read = held.settings.read(Buffer.from(encoded(settings, 'settings'))).settings;
  const uid = typeof whole.uid === 'string' ? whole.uid : '';
  return accepted(await held.judge(new Request(document, uid, cancellation), read), held.phase);
}
