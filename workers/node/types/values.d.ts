/**
 * The value, if it is Unicode text.
 *
 * @param {unknown} value
 * @param {string} what names it in the error
 * @returns {string}
 * @throws {InvalidAnswerError}
 */
export function text(value: unknown, what: string): string;
/**
 * The value, if it is a 32-bit whole number.
 *
 * @param {unknown} value
 * @param {string} what
 * @returns {number}
 * @throws {InvalidAnswerError}
 */
export function int32(value: unknown, what: string): number;
/**
 * The values as a frozen array. One text is not a list of texts.
 *
 * @template T
 * @param {unknown} values an iterable
 * @param {string} what
 * @param {(value: unknown, what: string) => T} check what each must be
 * @returns {readonly T[]}
 * @throws {InvalidAnswerError}
 */
export function listOf<T>(values: unknown, what: string, check: (value: unknown, what: string) => T): readonly T[];
/**
 * Whether it is an object as JSON has them: no array, no null, nothing of a class of its own.
 *
 * @param {unknown} value
 * @returns {value is Record<string, unknown>}
 */
export function isObject(value: unknown): value is Record<string, unknown>;
/**
 * The value, if it is an object as JSON has them.
 *
 * @param {unknown} value
 * @param {string} what
 * @returns {Record<string, unknown>}
 * @throws {InvalidAnswerError}
 */
export function object(value: unknown, what: string): Record<string, unknown>;
/**
 * Options that exist; a mistyped one would otherwise be ignored.
 *
 * @param {unknown} given
 * @param {readonly string[]} known
 * @param {string} what
 * @returns {Record<string, unknown>}
 * @throws {InvalidAnswerError}
 */
export function options(given: unknown, known: readonly string[], what: string): Record<string, unknown>;
/**
 * The name of its type: what an error says instead of the value, which may be a secret.
 *
 * @param {unknown} value
 * @returns {string}
 */
export function typeOf(value: unknown): string;
