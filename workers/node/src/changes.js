/**
 * The change of an allow: a JSON Patch, a JSON Merge Patch, or the whole object, as JSON text.
 *
 * The text is written where the answer is made. So a value that is not JSON throws inside the policy's function, and
 * later changes of the values do not change the answer. The gateway checks whether a patch applies.
 */

import { encoded } from './encoding.js';
import { InvalidAnswerError } from './errors.js';
import { isObject, object, typeOf } from './values.js';

/** @typedef {'jsonPatch' | 'mergePatch' | 'object'} ChangeKind the names of the contract's fields */

/**
 * An operation of RFC 6902.
 *
 * @typedef {{ op: 'add' | 'replace' | 'test', path: string, value: unknown }
 *   | { op: 'remove', path: string }
 *   | { op: 'move' | 'copy', path: string, from: string }} Operation
 */

/** Required members of each operation besides `op`: RFC 6902, section 4. @type {Readonly<Record<string, string[]>>} */
const NEEDED = Object.freeze({
  add: ['path', 'value'],
  remove: ['path'],
  replace: ['path', 'value'],
  move: ['path', 'from'],
  copy: ['path', 'from'],
  test: ['path', 'value'],
});

/** Contents that change nothing, and are not sent. */
const NOTHING = Object.freeze({ jsonPatch: '[]', mergePatch: '{}', object: undefined });

/** The change of an allow. */
export class Change {
  /**
   * @param {ChangeKind} kind the form of the change
   * @param {string} content JSON text, its paths over the object
   */
  constructor(kind, content) {
    this.kind = kind;
    this.content = content;
    Object.freeze(this);
  }

  /** The content parsed, for tests: the operations, the merge patch or the object. @returns {any} */
  get value() {
    return JSON.parse(this.content);
  }

  /** Whether it changes nothing. */
  get isEmpty() {
    return this.content === NOTHING[this.kind];
  }
}

/**
 * A JSON Patch of checked operations (RFC 6902).
 *
 * @param {Iterable<Operation>} operations
 * @returns {Change}
 * @throws {InvalidAnswerError}
 */
export function jsonPatch(operations) {
  if (typeof operations === 'string' || typeof operations?.[Symbol.iterator] !== 'function') {
    throw new InvalidAnswerError(`patch: must be an array of operations, is ${typeOf(operations)}`);
  }
  const list = [...operations];
  list.forEach((operation, index) => {
    checkOperation(operation, `patch[${index}]`);
  });
  return new Change('jsonPatch', encoded(list, 'patch'));
}

/**
 * A JSON Merge Patch (RFC 7386).
 *
 * @param {Record<string, unknown>} changes
 * @returns {Change}
 * @throws {InvalidAnswerError}
 */
export function mergePatch(changes) {
  return new Change('mergePatch', encoded(object(changes, 'merge'), 'merge'));
}

/**
 * The complete changed object.
 *
 * @param {object} whole
 * @returns {Change}
 * @throws {InvalidAnswerError}
 */
export function wholeObject(whole) {
  return new Change('object', encoded(object(whole, 'mutated'), 'mutated'));
}

/**
 * @param {unknown} operation
 * @param {string} what
 */
function checkOperation(operation, what) {
  if (!isObject(operation)) throw new InvalidAnswerError(`${what}: must be an operation, is ${typeOf(operation)}`);
  const op = operation.op;
  if (typeof op !== 'string' || !Object.hasOwn(NEEDED, op)) {
    throw new InvalidAnswerError(`${what}.op: must be one of ${Object.keys(NEEDED).join(', ')}`);
  }
  const missing = NEEDED[op].filter(name => operation[name] === undefined);
  if (missing.length > 0) throw new InvalidAnswerError(`${what}: ${op} needs ${missing.join(' and ')}`);
  for (const name of ['path', 'from']) {
    const place = operation[name] ?? '';
    if (typeof place !== 'string' || (place !== '' && !place.startsWith('/'))) {
      throw new InvalidAnswerError(`${what}.${name}: must be a JSON Pointer such as /metadata/labels`);
    }
  }
}
