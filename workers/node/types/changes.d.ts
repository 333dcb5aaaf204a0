/**
 * A JSON Patch of checked operations (RFC 6902).
 *
 * @param {Iterable<Operation>} operations
 * @returns {Change}
 * @throws {InvalidAnswerError}
 */
export function jsonPatch(operations: Iterable<Operation>): Change;
/**
 * A JSON Merge Patch (RFC 7386).
 *
 * @param {Record<string, unknown>} changes
 * @returns {Change}
 * @throws {InvalidAnswerError}
 */
export function mergePatch(changes: Record<string, unknown>): Change;
/**
 * The complete changed object.
 *
 * @param {object} whole
 * @returns {Change}
 * @throws {InvalidAnswerError}
 */
export function wholeObject(whole: object): Change;
/** The change of an allow. */
export class Change {
    /**
     * @param {ChangeKind} kind the form of the change
     * @param {string} content JSON text, its paths over the object
     */
    constructor(kind: ChangeKind, content: string);
    kind: ChangeKind;
    content: string;
    /** The content parsed, for tests: the operations, the merge patch or the object. @returns {any} */
    get value(): any;
    /** Whether it changes nothing. */
    get isEmpty(): boolean;
}
/**
 * the names of the contract's fields
 */
export type ChangeKind = "jsonPatch" | "mergePatch" | "object";
/**
 * An operation of RFC 6902.
 */
export type Operation = {
    op: "add" | "replace" | "test";
    path: string;
    value: unknown;
} | {
    op: "remove";
    path: string;
} | {
    op: "move" | "copy";
    path: string;
    from: string;
};
