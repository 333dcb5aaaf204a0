/**
 * The original text of every number in a returned object that its policy did not change.
 *
 * An object that was changed in place, or spread, has these texts: they are stored for each array and object that was
 * read (`fidelity.js`). A copy (`structuredClone`, `JSON.parse(JSON.stringify(...))`, a member spread into another
 * object) has none. So the returned object is compared with the one that was sent: a number that is still the same in the same
 * place gets its text back. A number that lost digits and was moved cannot be restored, and the answer becomes a
 * failure: no number changes silently.
 */

import { encoded } from './encoding.js';
import { InvalidAnswerError } from './errors.js';
import { memoryOf, remember, rememberNumber, writtenNumber } from './fidelity.js';
import { isObject } from './values.js';

const DECIMAL = /^-?(?<whole>[0-9]+)(?:\.(?<fraction>[0-9]+))?(?:[eE](?<exponent>[+-]?[0-9]+))?$/;

/**
 * The returned object's text, with the number texts of the object that was sent.
 *
 * @param {string} content JSON text of the object that the policy returned
 * @param {unknown} sent the object that was sent, unchanged, with its stored number texts
 * @returns {string}
 * @throws {InvalidAnswerError} a number that lost digits was moved in a copy
 */
export function withNumbersOf(content, sent) {
  const returned = JSON.parse(content);
  remember(returned, content);
  /** @type {Set<number>} */
  const lossy = new Set();
  restore(sent, returned, lossy);
  if (lossy.size > 0) refuseLost(returned, lossy);
  return encoded(returned, 'mutated');
}

/**
 * @param {any} sent
 * @param {any} returned
 * @param {Set<number>} lossy receives the doubles that differ from the number that was sent
 */
function restore(sent, returned, lossy) {
  const memory = memoryOf(sent);
  for (const [place, written] of memory?.numbers ?? []) {
    if (!isExact(written.text)) lossy.add(written.value);
    if (isContainer(returned) && Object.hasOwn(returned, place) && Object.is(returned[place], written.value)) {
      if (writtenNumber(memoryOf(returned), place, written.value) === undefined) {
        rememberNumber(returned, place, written);
      }
    }
  }
  for (const place of Object.keys(sent)) {
    if (!isContainer(sent[place])) continue;
    const there = isContainer(returned) && Object.hasOwn(returned, place) ? returned[place] : undefined;
    restore(sent[place], there, lossy);
  }
}

/**
 * @param {any} container
 * @param {Set<number>} lossy
 */
function refuseLost(container, lossy) {
  const memory = memoryOf(container);
  for (const [name, value] of Object.entries(container)) {
    const place = Array.isArray(container) ? Number(name) : name;
    if (isContainer(value)) refuseLost(value, lossy);
    else if (typeof value === 'number' && lossy.has(value) && writtenNumber(memory, place, value) === undefined) {
      throw new InvalidAnswerError(
        `mutated: a copy of the object has moved a number to ${name} that JavaScript cannot hold, and its digits are ` +
          'lost: change request.object itself, or answer with patch()',
      );
    }
  }
}

/**
 * Whether a double's shortest text is the same number.
 *
 * @param {string} text of a JSON number
 */
function isExact(text) {
  return canonical(text) === canonical(String(Number(text)));
}

/**
 * A decimal number as its digits and its power of ten, without leading and trailing zeros.
 *
 * @param {string} text
 * @returns {string}
 */
function canonical(text) {
  const found = DECIMAL.exec(text)?.groups;
  if (found === undefined) return text;
  const digits = `${found.whole}${found.fraction ?? ''}`.replace(/^0+/, '');
  const significant = digits.replace(/0+$/, '');
  if (significant === '') return '0';
  const power = BigInt(found.exponent ?? 0) - BigInt(found.fraction?.length ?? 0);
  return `${significant}e${power + BigInt(digits.length - significant.length)}`;
}

/**
 * @param {unknown} value
 * @returns {value is any}
 */
function isContainer(value) {
  return Array.isArray(value) || isObject(value);
}
