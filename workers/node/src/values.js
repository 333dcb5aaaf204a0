/** Type checks of the values in an answer. A wrong one throws where the answer is made. */

import { InvalidAnswerError } from './errors.js';

/** The range of the contract's int32. */
const INT32_MIN = -(2 ** 31);
const INT32_MAX = 2 ** 31 - 1;

/**
 * Check that a value is Unicode text.
 *
 * @param {unknown} value
 * @param {string} what names the value in errors
 * @returns {string}
 * @throws {InvalidAnswerError}
 */
export function text(value, what) {
  if (typeof value !== 'string') throw new InvalidAnswerError(`${what}: must be text, is ${typeOf(value)}`);
  if (!value.isWellFormed()) {
    throw new InvalidAnswerError(`${what}: holds a lone surrogate, which is no Unicode text`);
  }
  return value;
}

/**
 * Check that a value is a 32-bit whole number.
 *
 * @param {unknown} value
 * @param {string} what
 * @returns {number}
 * @throws {InvalidAnswerError}
 */
export function int32(value, what) {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < INT32_MIN || value > INT32_MAX) {
    throw new InvalidAnswerError(`${what}: must be a 32-bit whole number, is ${typeOf(value)}`);
  }
  return value;
}

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
export function listOf(values, what, check) {
  const iterable = /** @type {Iterable<unknown>} */ (values);
  if (typeof values === 'string' || typeof iterable?.[Symbol.iterator] !== 'function') {
    throw new InvalidAnswerError(`${what}: must be an array, is ${typeOf(values)}`);
  }
  return Object.freeze(Array.from(iterable, (value, index) => check(value, `${what}[${index}]`)));
}

/**
 * Whether a value is a plain object: not null, not an array, not an instance of a class.
 *
 * @param {unknown} value
 * @returns {value is Record<string, unknown>}
 */
export function isObject(value) {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const prototype = Object.getPrototypeOf(value);
  // An object of another realm (vm, a test runner) has another Object.prototype, whose prototype is null too.
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/**
 * Check that a value is a plain object.
 *
 * @param {unknown} value
 * @param {string} what
 * @returns {Record<string, unknown>}
 * @throws {InvalidAnswerError}
 */
export function object(value, what) {
  if (!isObject(value)) throw new InvalidAnswerError(`${what}: must be a plain object, is ${typeOf(value)}`);
  return value;
}

/**
 * Check that all options are known: a mistyped one would otherwise be ignored.
 *
 * @param {unknown} given
 * @param {readonly string[]} known
 * @param {string} what
 * @returns {Record<string, unknown>}
 * @throws {InvalidAnswerError}
 */
export function options(given, known, what) {
  const found = object(given, `${what}'s options`);
  for (const name of Object.keys(found)) {
    if (!known.includes(name))
      throw new InvalidAnswerError(`${what}: no option ${name}; there are ${known.join(', ')}`);
  }
  return found;
}

/**
 * The name of a value's type, for errors: the value itself may be secret.
 *
 * @param {unknown} value
 * @returns {string}
 */
export function typeOf(value) {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  if (typeof value !== 'object' && typeof value !== 'function') return typeof value;
  const name = value.constructor?.name;
  return typeof name === 'string' && name !== '' && name !== 'Object' ? name : typeof value;
}
