/**
 * A value as compact JSON text.
 *
 * Members that are undefined are left out, as `JSON.stringify` does; a bigint is a whole number of any size.
 *
 * @param {unknown} value
 * @param {string} what names it in the error
 * @returns {string}
 * @throws {InvalidAnswerError} something in it is no JSON value
 */
export function encoded(value: unknown, what: string): string;
/**
 * The JSON text of a member of a document or of settings, its number as it was written there: 9007199254740993 and 1.0
 * have no other text than their own. For messages, and to compare numbers exactly.
 *
 * @param {object} container the object or array that holds it, as it was read
 * @param {string | number} place the member's name or the element's index
 * @returns {string} `null` where there is no such member
 * @throws {InvalidAnswerError} the author put something there that is no JSON value
 */
export function jsonOf(container: object, place: string | number): string;
