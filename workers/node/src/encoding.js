/**
 * Values as JSON text, with the text of every number that was read (`fidelity.js`). A value that JSON does not have is
 * an error, where `JSON.stringify` would omit it or write null, which in a merge patch removes a field.
 */

import { InvalidAnswerError } from './errors.js';
import { keysOf, memoryOf, writtenNumber } from './fidelity.js';
import { isObject, typeOf } from './values.js';

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
export function encoded(value, what) {
  try {
    return written(value, what);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new InvalidAnswerError(`${what}: cannot be written as JSON: it is nested too deep, or holds itself`);
  }
}

/**
 * The JSON text of a member of a document or of settings; a number keeps the text that was read, such as
 * 9007199254740993 or 1.0. For messages, and to compare numbers exactly.
 *
 * @param {object} container the object or array that holds it, as it was read
 * @param {string | number} place the member's name or the element's index
 * @returns {string} `null` where there is no such member
 * @throws {InvalidAnswerError} the policy assigned a value there that is not JSON
 */
export function jsonOf(container, place) {
  const found = Object.hasOwn(container, place) ? Reflect.get(container, place) : undefined;
  return writtenNumber(memoryOf(container), place, found) ?? encoded(found ?? null, String(place));
}

/**
 * @param {unknown} value
 * @param {string} what
 * @returns {string}
 */
function written(value, what) {
  if (value === null) return 'null';
  switch (typeof value) {
    case 'string':
      return quoted(value, what);
    case 'boolean':
    case 'bigint':
      return String(value);
    case 'number':
      return writtenDouble(value, what);
    case 'object':
      return writtenContainer(value, what);
    default:
      throw new InvalidAnswerError(`${what}: cannot be written as JSON: it holds ${typeOf(value)}`);
  }
}

/**
 * @param {string} text
 * @param {string} what
 * @returns {string}
 */
function quoted(text, what) {
  if (!text.isWellFormed()) throw new InvalidAnswerError(`${what}: holds a lone surrogate, which is no Unicode text`);
  return JSON.stringify(text);
}

/**
 * @param {number} value
 * @param {string} what
 * @returns {string}
 */
function writtenDouble(value, what) {
  if (!Number.isFinite(value)) {
    throw new InvalidAnswerError(`${what}: cannot be written as JSON: NaN and infinities are no JSON numbers`);
  }
  return Object.is(value, -0) ? '-0' : String(value);
}

/**
 * @param {object} value
 * @param {string} what
 * @returns {string}
 */
function writtenContainer(value, what) {
  if ('toJSON' in value && typeof value.toJSON === 'function') return written(value.toJSON(), what);
  const memory = memoryOf(value);
  if (Array.isArray(value)) {
    const parts = Array.from(value, (part, index) => writtenNumber(memory, index, part) ?? written(part, what));
    return `[${parts.join(',')}]`;
  }
  if (!isObject(value)) throw new InvalidAnswerError(`${what}: cannot be written as JSON: it holds ${typeOf(value)}`);
  const parts = [];
  for (const key of keysOf(value)) {
    const part = value[key];
    if (part === undefined) continue;
    parts.push(`${quoted(key, what)}:${writtenNumber(memory, key, part) ?? written(part, what)}`);
  }
  return `{${parts.join(',')}}`;
}
