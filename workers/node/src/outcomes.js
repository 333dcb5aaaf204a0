/** Conversion of answers into the contract's Outcomes. An answer that the phase does not allow is a failure. */

import { Allow, allow, Deny, Failure, NO_STORE } from './answers.js';
import { InvalidAnswerError } from './errors.js';
import { REASONS } from './messages.js';
import { typeOf } from './values.js';

/** @typedef {import('./answers.js').Answer} Answer */

const ALLOW = allow();

const ANSWERS = 'allow(), deny(), patch(), merge(), mutated(), fail() or nothing';

/**
 * Check that a policy function returned an answer for its phase.
 *
 * @param {unknown} answer the function's result; undefined and null are allow
 * @param {import('./policies.js').Phase} phase in which it was called
 * @returns {Answer}
 * @throws {InvalidAnswerError} not an answer, or a change in the validating phase
 */
export function accepted(answer, phase) {
  if (answer === undefined || answer === null) return ALLOW;
  if (!(answer instanceof Allow || answer instanceof Deny || answer instanceof Failure)) {
    throw new InvalidAnswerError(`returned ${typeOf(answer)}: must be ${ANSWERS}`);
  }
  if (phase === 'validating' && answer instanceof Allow && answer.change !== undefined) {
    throw new InvalidAnswerError(
      `returned a change (${answer.change.kind}): only a mutating policy may change the object`,
    );
  }
  return answer;
}

/**
 * The answer as an Outcome's fields.
 *
 * @param {Answer} answer from `accepted`
 * @param {string} version of the policy
 * @returns {object}
 */
export function outcomeOf(answer, version) {
  if (answer instanceof Failure) return failureOf(answer.message, version);
  const { warnings, auditAnnotations } = answer;
  const common = { warnings, auditAnnotations, cache: hintOf(answer.cache), version };
  return answer instanceof Deny ? { deny: denyOf(answer), ...common } : { allow: allowOf(answer), ...common };
}

/**
 * The fields of an Outcome without a verdict.
 *
 * @param {string} message one sentence
 * @param {string} version of the policy
 * @param {number} [reason]
 * @returns {object}
 */
export function failureOf(message, version, reason = REASONS.unspecified) {
  return { failure: { message, reason }, version };
}

/**
 * An answer's kind, for a span.
 *
 * @param {Answer} answer
 * @returns {'allow' | 'deny' | 'failure'}
 */
export function verdictOf(answer) {
  if (answer instanceof Failure) return 'failure';
  return answer instanceof Deny ? 'deny' : 'allow';
}

/** @param {Allow} answer */
function allowOf({ change }) {
  if (change === undefined || change.isEmpty) return {};
  return { [change.kind]: Buffer.from(change.content) };
}

/** @param {Deny} answer */
function denyOf({ code, message, reason, causes, details }) {
  const hasDetails = causes.length > 0 || Object.values(details).some(Boolean);
  return { code, message, reason, details: hasDetails ? { ...details, causes } : undefined };
}

/** @param {number | typeof NO_STORE | undefined} cache */
function hintOf(cache) {
  if (cache === undefined) return undefined;
  if (cache === NO_STORE) return { noStore: {} };
  const seconds = Math.floor(cache);
  const nanos = Math.round((cache - seconds) * 1e9);
  return { ttl: nanos < 1e9 ? { seconds, nanos } : { seconds: seconds + 1, nanos: 0 } };
}
