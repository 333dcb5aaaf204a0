/**
 * JSON Pointers (RFC 6901): how a policy says which places it reads and writes, and how errors say where.
 *
 * 'The token "~" is encoded as "~0" and "/" as "~1"': RFC 6901, section 3. In claims a token `*` stands for every
 * element or member, so a member that is really called `*` cannot be claimed alone.
 */

import { RegistrationError } from './errors.js';

const VALID = /^(?:\/(?:[^~/]|~[01])*)+$/;

/** Pointers in one claim, and tokens in one pointer: the gateway takes no more, and no request is nested deeper. */
export const MOST = 256;

/** Characters of a wrong pointer that an error repeats. */
const SHOWN = 80;

/**
 * The JSON Pointer of a place: `pointer('metadata', 'labels', 'a/b')` is `/metadata/labels/a~1b`.
 *
 * @param {...(string | number)} tokens members and indexes on the way
 * @returns {string}
 */
export function pointer(...tokens) {
  return tokens.map(token => `/${String(token).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

/**
 * The tokens of a valid pointer, without escapes: `/a~1b/0` is `['a/b', '0']`.
 *
 * @param {string} text a valid pointer
 * @returns {string[]}
 */
export function tokensOf(text) {
  return text
    .split('/')
    .slice(1)
    .map(token => token.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/**
 * The claimed pointers as they are sent, each once: claims are put together from lists of places, and the gateway
 * refuses one that is named twice.
 *
 * @param {unknown} claims JSON Pointers
 * @param {string} what who claims them, for the error
 * @returns {readonly string[]}
 * @throws {RegistrationError} no list, something that is no pointer or is empty (spelt EVERYTHING), or too many
 */
export function checkedPointers(claims, what) {
  if (!Array.isArray(claims)) {
    const hint = typeof claims === 'string' ? `; write [${JSON.stringify(claims)}]` : '';
    throw new RegistrationError(`${what}: must be an array of JSON Pointers, or EVERYTHING${hint}`);
  }
  const pointers = [...new Set(claims.map(claim => checkedOne(claim, what)))];
  if (pointers.length > MOST) {
    throw new RegistrationError(
      `${what}: at most ${MOST} pointers, there are ${pointers.length}; claim what holds several of them`,
    );
  }
  return Object.freeze(pointers);
}

/**
 * @param {unknown} claim
 * @param {string} what
 * @returns {string}
 */
function checkedOne(claim, what) {
  if (typeof claim !== 'string' || !VALID.test(claim) || !claim.isWellFormed()) {
    const shown = typeof claim === 'string' ? JSON.stringify(claim.slice(0, SHOWN)) : typeof claim;
    const hint = claim === '' ? '; everything is spelt EVERYTHING' : '';
    throw new RegistrationError(`${what}: ${shown} is no JSON Pointer such as "/object/metadata/labels"${hint}`);
  }
  if (tokensOf(claim).length > MOST) {
    const shown = JSON.stringify(claim.slice(0, SHOWN));
    throw new RegistrationError(
      `${what}: ${shown}... has more than ${MOST} segments, and no request is nested so deep`,
    );
  }
  return claim;
}
