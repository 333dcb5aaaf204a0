/**
 * What went wrong below us, in the words of whoever says it, on one line.
 *
 * @param {unknown} error whatever was thrown
 * @returns {string}
 */
export function reasonOf(error: unknown): string;
/**
 * Whose fault it was. Each of these becomes a failure, a settings error or one line at the start: never a crash and
 * never a verdict.
 */
/**
 * The gateway's fault: the document is no JSON object, or a member of it is not what an AdmissionRequest holds there.
 * The message is safe to show: it holds positions and types, never values.
 */
export class InvalidDocumentError extends Error {
}
/**
 * The policy author's fault: an answer that cannot mean anything, such as a warning that is no text. The message is
 * safe to show: it holds names and types, never values.
 */
export class InvalidAnswerError extends TypeError {
}
/** The policy author's fault: a policy that cannot be registered. Nothing is served until all are sound. */
export class RegistrationError extends Error {
}
/** The operator's fault: the address cannot be listened on. The message is one line. */
export class AddressError extends Error {
}
/** The operator's fault: a certificate, a key or an authority cannot be used. The message is one line. */
export class CertificateError extends Error {
}
/** One thing that is wrong with settings. A plain value, and nothing to throw: all of them are told at once. */
export class SettingsError {
    /**
     * @param {string} pointer where, as a JSON Pointer over the settings, such as `/labels/team`; `''`: as a whole
     * @param {string} message what is expected and what was found, in one sentence
     */
    constructor(pointer: string, message: string);
    pointer: string;
    message: string;
    /** `/labels/team: must be ...`. */
    toString(): string;
}
/** What the operator should know about settings that are accepted, such as a deprecated member. */
export class SettingsWarning {
    /** @param {string} message one sentence */
    constructor(message: string);
    message: string;
}
/** The operator's fault: all that is wrong with a policy's settings. */
export class InvalidSettingsError extends Error {
    /**
     * @param {readonly SettingsError[]} errors one for each thing that is wrong; never empty
     * @param {ErrorOptions} [options] `cause`: what the author's own check threw
     */
    constructor(errors: readonly SettingsError[], options?: ErrorOptions);
    errors: readonly SettingsError[];
}
