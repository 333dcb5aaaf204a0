/**
 * The JSON Pointer of a place: `pointer('metadata', 'labels', 'a/b')` is `/metadata/labels/a~1b`.
 *
 * @param {...(string | number)} tokens members and indexes on the way
 * @returns {string}
 */
export function pointer(...tokens: (string | number)[]): string;
/**
 * The unescaped tokens of a valid pointer: `/a~1b/0` is `['a/b', '0']`.
 *
 * @param {string} text a valid pointer
 * @returns {string[]}
 */
export function tokensOf(text: string): string[];
/**
 * Check claimed pointers and remove duplicates, which the gateway rejects and which lists of places can contain.
 *
 * @param {unknown} claims JSON Pointers
 * @param {string} what names the claim in errors
 * @returns {readonly string[]}
 * @throws {RegistrationError} not an array, an invalid or empty pointer (written EVERYTHING), or too many
 */
export function checkedPointers(claims: unknown, what: string): readonly string[];
/** Pointers in one claim, and tokens in one pointer: the gateway accepts no more, and no request is nested deeper. */
export const MOST: 256;
