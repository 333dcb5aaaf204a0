/**
 * The worker's log: one line for each event on standard error, for people or as JSON.
 *
 * The gateway that started the worker, or the container runtime, collects standard error. Uids are logged, documents
 * never.
 */
export const FORMATS: readonly string[];
export const LEVELS: readonly string[];
/**
 * What an event is about.
 *
 * @typedef {object} Fields
 * @property {string} [uid] of the AdmissionRequest
 * @property {string} [policy]
 * @property {unknown} [error] what was thrown; its stack is logged
 */
/** The log. */
export class Log {
    /**
     * @param {object} [given]
     * @param {string} [given.format] one of FORMATS
     * @param {string} [given.level] one of LEVELS: the lowest that is written
     * @param {(line: string) => void} [given.write] called with one line, or several if there is a stack
     */
    constructor({ format, level, write }?: {
        format?: string | undefined;
        level?: string | undefined;
        write?: ((line: string) => void) | undefined;
    });
    /** @param {string} message @param {Fields} [fields] */
    debug(message: string, fields?: Fields): void;
    /** @param {string} message @param {Fields} [fields] */
    info(message: string, fields?: Fields): void;
    /** @param {string} message @param {Fields} [fields] */
    warning(message: string, fields?: Fields): void;
    /** @param {string} message @param {Fields} [fields] */
    error(message: string, fields?: Fields): void;
    #private;
}
/**
 * What an event is about.
 */
export type Fields = {
    /**
     * of the AdmissionRequest
     */
    uid?: string | undefined;
    policy?: string | undefined;
    /**
     * what was thrown; its stack is logged
     */
    error?: unknown;
};
