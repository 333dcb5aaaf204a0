/**
 * JSON Pointers (RFC 6901) of claims and settings errors.
 *
 * 'The token "~" is encoded as "~0" and "/" as "~1"': RFC 6901, section 3. In claims a token `*` stands for every
 * element or member, so a member named `*` cannot be claimed alone.
 */

import { RegistrationError } from './errors.js';

const VALID = /^(?:\/(?:[^~/]|~[01])*)+$/;

/** Pointers in one claim, and tokens in one pointer: the gateway accepts no more, and no request is nested deeper. */
export const MOST = 256;

/** Characters of an invalid pointer that an error quotes. */
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
 * The unescaped tokens of a valid pointer: `/a~1b/0` is `['a/b', '0']`.
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
 * Check claimed pointers and remove duplicates, which the gateway rejects and which lists of places can contain.
 *
 * @param {unknown} claims JSON Pointers
 * @param {string} what names the claim in errors
 * @returns {readonly string[]}
 * @throws {RegistrationError} not an array, an invalid or empty pointer (written EVERYTHING), or too many
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
