/**
 * Check that a policy function returned an answer for its phase.
 *
 * @param {unknown} answer the function's result; undefined and null are allow
 * @param {import('./policies.js').Phase} phase in which it was called
 * @returns {Answer}
 * @throws {InvalidAnswerError} not an answer, or a change in the validating phase
 */
export function accepted(answer: unknown, phase: import("./policies.js").Phase): Answer;
/**
 * The answer as an Outcome's fields.
 *
 * @param {Answer} answer from `accepted`
 * @param {string} version of the policy
 * @returns {object}
 */
export function outcomeOf(answer: Answer, version: string): object;
/**
 * The fields of an Outcome without a verdict.
 *
 * @param {string} message one sentence
 * @param {string} version of the policy
 * @param {number} [reason]
 * @returns {object}
 */
export function failureOf(message: string, version: string, reason?: number): object;
/**
 * An answer's kind, for a span.
 *
 * @param {Answer} answer
 * @returns {'allow' | 'deny' | 'failure'}
 */
export function verdictOf(answer: Answer): "allow" | "deny" | "failure";
export type Answer = import("./answers.js").Answer;
