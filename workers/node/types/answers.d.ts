/** @typedef {Allow | Deny | Failure} Answer what a policy function returns; nothing (undefined or null) is `allow()` */
/**
 * Let the request pass as it is.
 *
 * @param {AnswerOptions} [given]
 * @returns {Allow}
 * @throws {InvalidAnswerError} one of these is of another type, or an audit key has other characters
 */
export function allow(given?: AnswerOptions): Allow;
/**
 * Let the request pass changed by a JSON Patch (RFC 6902). Mutating policies only.
 *
 * @param {Iterable<import('./changes.js').Operation>} operations such as
 *   `{ op: 'add', path: '/metadata/labels/team', value: 'a' }`, paths over the object; no operation leaves the object
 *   as it is. `pointer(...)` makes paths and escapes keys
 * @param {AnswerOptions} [given]
 * @returns {Allow}
 * @throws {InvalidAnswerError} an operation that RFC 6902 does not know or that lacks a member, or a value that is
 *   not JSON
 */
export function patch(operations: Iterable<import("./changes.js").Operation>, given?: AnswerOptions): Allow;
/**
 * Let the request pass changed by a JSON Merge Patch (RFC 7386), where null removes. Mutating policies only.
 *
 * @param {Record<string, unknown>} changes such as `{ metadata: { labels: { team: 'a' } } }`; arrays are replaced whole
 * @param {AnswerOptions} [given]
 * @returns {Allow}
 * @throws {InvalidAnswerError} not a JSON object
 */
export function merge(changes: Record<string, unknown>, given?: AnswerOptions): Allow;
/**
 * Let the request pass with this object; the gateway compares it with the one that it sent. Mutating policies only.
 *
 * @param {object} whole the complete changed object; `request.object` may be changed and returned. Numbers that the
 *   policy does not change keep their text
 * @param {AnswerOptions} [given]
 * @returns {Allow}
 * @throws {InvalidAnswerError} not a JSON object
 */
export function mutated(whole: object, given?: AnswerOptions): Allow;
/**
 * Deny the request.
 *
 * @param {string} message for the denied user: what is wrong and what to do
 * @param {DenyOptions} [given]
 * @returns {Deny}
 * @throws {InvalidAnswerError} one of these is of another type
 */
export function deny(message: string, given?: DenyOptions): Deny;
/**
 * Report that the policy could not judge; the operator's failurePolicy decides.
 *
 * @param {string} message for the operator: the cause, in one sentence. Under failurePolicy Fail the user sees it too
 * @returns {Failure}
 * @throws {InvalidAnswerError} the message is no text
 */
export function fail(message: string): Failure;
/** Seconds of a hundred years. A protobuf Duration holds 10,000 years; a time this long is an error in any case. */
export const LONGEST_CACHE: number;
/** As `cache`: this verdict must never be reused. */
export const NO_STORE: unique symbol;
/** The request may pass, perhaps changed. Made by `allow`, `patch`, `merge` and `mutated`. */
export class Allow extends Verdict {
    /**
     * @param {import('./changes.js').Change | undefined} change
     * @param {Record<string, unknown>} given
     * @param {string} what
     */
    constructor(change: import("./changes.js").Change | undefined, given: Record<string, unknown>, what: string);
    change: import("./changes.js").Change | undefined;
}
/** The request must not pass. Made by `deny`. */
export class Deny extends Verdict {
    /**
     * @param {unknown} message
     * @param {Record<string, unknown>} given
     */
    constructor(message: unknown, given: Record<string, unknown>);
    message: string;
    code: number;
    reason: string;
    causes: readonly Readonly<Required<Cause>>[];
    details: Readonly<Required<Details>>;
}
/** The policy could not judge. Made by `fail`. */
export class Failure {
    /** @param {unknown} message */
    constructor(message: unknown);
    message: string;
}
/**
 * what a policy function returns; nothing (undefined or null) is `allow()`
 */
export type Answer = Allow | Deny | Failure;
/**
 * Options of every answer but `fail`.
 */
export type AnswerOptions = {
    /**
     * shown to the user by kubectl; each under 120 characters, without control
     * characters
     */
    warnings?: Iterable<string> | undefined;
    /**
     * for the API server's audit log. Keys: 1 to 63
     * letters, digits, `-`, `_`, `.`. The values must be the same for the same document and settings
     */
    auditAnnotations?: Readonly<Record<string, string>> | undefined;
    /**
     * for how many seconds this verdict may be reused, or NO_STORE; it can
     * only shorten what the operator configured. Default: as configured
     */
    cache?: number | unique symbol | undefined;
};
/**
 * One thing that is wrong (a metav1.StatusCause).
 */
export type Cause = {
    /**
     * in Kubernetes' notation, such as `spec.containers[0].image`
     */
    field: string;
    /**
     * for people
     */
    message: string;
    /**
     * a metav1.CauseType such as `FieldValueRequired`; default `FieldValueInvalid`
     */
    reason?: string | undefined;
};
/**
 * What a denial is about (a metav1.StatusDetails without its causes).
 */
export type Details = {
    name?: string | undefined;
    group?: string | undefined;
    kind?: string | undefined;
    uid?: string | undefined;
    /**
     * after how many seconds to try again
     */
    retryAfterSeconds?: number | undefined;
};
/**
 * Options of a denial.
 */
export type DenyOnlyOptions = {
    /**
     * an HTTP status, 400 to 599; outside of that the gateway sends 400, as kube-apiserver does.
     * Default: 403
     */
    code?: number | undefined;
    /**
     * a metav1.StatusReason. Default: the one that Kubernetes pairs with `code`, if any
     */
    reason?: string | undefined;
    /**
     * one for each thing that is wrong, for machines
     */
    causes?: Iterable<Cause> | undefined;
    /**
     * which resource it is about, and when to try again
     */
    details?: Details | undefined;
};
export type DenyOptions = AnswerOptions & DenyOnlyOptions;
/** The common part of allow and deny. */
declare class Verdict {
    /**
     * @param {Record<string, unknown>} given
     * @param {string} what
     */
    constructor(given: Record<string, unknown>, what: string);
    warnings: readonly string[];
    auditAnnotations: Readonly<Record<string, string>>;
    cache: number | unique symbol | undefined;
}
export {};
