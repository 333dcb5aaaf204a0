/**
 * Check that a value is Unicode text.
 *
 * @param {unknown} value
 * @param {string} what names the value in errors
 * @returns {string}
 * @throws {InvalidAnswerError}
 */
export function text(value: unknown, what: string): string;
/**
 * Check that a value is a 32-bit whole number.
 *
 * @param {unknown} value
 * @param {string} what
 * @returns {number}
 * @throws {InvalidAnswerError}
 */
export function int32(value: unknown, what: string): number;
/**
 * The values as a frozen array. A text does not count as an iterable.
 *
 * @template T
 * @param {unknown} values an iterable
 * @param {string} what
 * @param {(value: unknown, what: string) => T} check of each value
 * @returns {readonly T[]}
 * @throws {InvalidAnswerError}
 */
export function listOf<T>(values: unknown, what: string, check: (value: unknown, what: string) => T): readonly T[];
/**
 * Whether a value is a plain object: not null, not an array, not an instance of a class.
 *
 * @param {unknown} value
 * @returns {value is Record<string, unknown>}
 */
export function isObject(value: unknown): value is Record<string, unknown>;
/**
 * Check that a value is a plain object.
 *
 * @param {unknown} value
 * @param {string} what
 * @returns {Record<string, unknown>}
 * @throws {InvalidAnswerError}
 */
export function object(value: unknown, what: string): Record<string, unknown>;
/**
 * Check that all options are known: a mistyped one would otherwise be ignored.
 *
 * @param {unknown} given
 * @param {readonly string[]} known
 * @param {string} what
 * @returns {Record<string, unknown>}
 * @throws {InvalidAnswerError}
 */
export function options(given: unknown, known: readonly string[], what: string): Record<string, unknown>;
/**
 * The name of a value's type, for errors: the value itself may be secret.
 *
 * @param {unknown} value
 * @returns {string}
 */
export function typeOf(value: unknown): string;
