/**
 * Test a policy without a server: `review` returns its answer to a request and settings.
 *
 *     import { review } from 'admission-worker/testing';
 *
 *     test('an object without a team is denied', async () => {
 *       const request = { operation: 'CREATE', object: { metadata: {} } };
 *       assert.deepEqual(await review(worker, 'required-label', request, { key: 'team' }), deny('...'));
 *     });
 *
 * The policy is sent the parts that it claims as its `inputs`, as by the gateway. So a policy that reads more fails its
 * tests and not in production. Errors that a policy throws are passed on.
 */

import { Cancellation } from './cancellation.js';
import { encoded } from './encoding.js';
import { accepted } from './outcomes.js';
import { documentOf } from './projection.js';
import { Document, Request } from './request.js';
import { isObject } from './values.js';

/**
 * Call a policy with a request.
 *
 * @param {import('./worker.js').Worker} worker which holds the policy
 * @param {string} policy its name
 * @param {Readonly<Record<string, unknown>>} request an AdmissionRequest in its JSON shape, or the parts of it that
 *   matter; or a whole AdmissionReview, as recorded from a cluster
 * @param {Readonly<Record<string, unknown>>} [settings] as the operator would write them; default `{}`
 * @param {object} [options]
 * @param {AbortSignal} [options.signal] aborts `request.signal`
 * @returns {Promise<import('./answers.js').Answer>} `allow()` if the policy returns nothing; `answer.change.value` is
 *   the patch that the policy returned
 * @throws {RangeError} the worker holds no such policy
 * @throws {import('./errors.js').InvalidSettingsError} all errors in the settings
 * @throws {import('./errors.js').InvalidAnswerError} the policy returned something that is no answer in its phase
 */
export async function review(worker, policy, request, settings = {}, { signal } = {}) {
  const held = worker.policies.get(policy);
  if (held === undefined) {
    const names = [...worker.policies.keys()].join(', ') || 'none';
    throw new RangeError(`worker ${worker.name} holds no policy ${JSON.stringify(policy)}; it holds: ${names}`);
  }
  const whole = isObject(request.request) ? request.request : request;
  const cancellation = new Cancellation();
  signal?.addEventListener('abort', () => cancellation.cancel('the test no longer waits'));
  if (signal?.aborted) cancellation.cancel('the test no longer waits');
  // Both are encoded and parsed, as in a call by the gateway.
  const document = new Document(Buffer.from(encoded(documentOf(whole, held.inputs), 'request')));
  const read = held.settings.read(Buffer.from(encoded(settings, 'settings'))).settings;
  const uid = typeof whole.uid === 'string' ? whole.uid : '';
  return accepted(await held.judge(new Request(document, uid, cancellation), read), held.phase);
}
