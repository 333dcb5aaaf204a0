/**
 * A value as compact JSON text.
 *
 * Undefined members are omitted, as by `JSON.stringify`; a bigint is a whole number of any size.
 *
 * @param {unknown} value
 * @param {string} what names it in the error
 * @returns {string}
 * @throws {InvalidAnswerError} a part of it is not a JSON value
 */
export function encoded(value: unknown, what: string): string;
/**
 * The JSON text of a member of a document or of settings; a number keeps the text that was read, such as
 * 9007199254740993 or 1.0. For messages, and to compare numbers exactly.
 *
 * @param {object} container the object or array that holds it, as it was read
 * @param {string | number} place the member's name or the element's index
 * @returns {string} `null` where there is no such member
 * @throws {InvalidAnswerError} the policy assigned a value there that is not JSON
 */
export function jsonOf(container: object, place: string | number): string;
