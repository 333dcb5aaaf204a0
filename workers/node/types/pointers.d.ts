/**
 * The JSON Pointer of a place: `pointer('metadata', 'labels', 'a/b')` is `/metadata/labels/a~1b`.
 *
 * @param {...(string | number)} tokens members and indexes on the way
 * @returns {string}
 */
export function pointer(...tokens: (string | number)[]): string;
/**
 * The tokens of a valid pointer, without escapes: `/a~1b/0` is `['a/b', '0']`.
 *
 * @param {string} text a valid pointer
 * @returns {string[]}
 */
export function tokensOf(text: string): string[];
/**
 * The claimed pointers as they are sent, each once: claims are put together from lists of places, and the gateway
 * refuses one that is named twice.
 *
 * @param {unknown} claims JSON Pointers
 * @param {string} what who claims them, for the error
 * @returns {readonly string[]}
 * @throws {RegistrationError} no list, something that is no pointer or is empty (spelt EVERYTHING), or too many
 */
export function checkedPointers(claims: unknown, what: string): readonly string[];
/** Pointers in one claim, and tokens in one pointer: the gateway takes no more, and no request is nested deeper. */
export const MOST: 256;
