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
export function review(worker: import("./worker.js").Worker, policy: string, request: Readonly<Record<string, unknown>>, settings?: Readonly<Record<string, unknown>>, { signal }?: {
    signal?: AbortSignal | undefined;
}): Promise<import("./answers.js").Answer>;
