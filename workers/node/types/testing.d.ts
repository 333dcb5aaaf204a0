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
export function review(worker: import("./worker.js").Worker, policy: string, request: Readonly<Record<string, unknown>>, settings?: Readonly<Record<string, unknown>>, { signal }?: {
    signal?: AbortSignal | undefined;
}): Promise<import("./answers.js").Answer>;
