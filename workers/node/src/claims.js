/**
 * The places that a policy reads and writes: everything, a list of pointers, or not declared. The contract
 * distinguishes the three.
 *
 * A claim can only narrow what the operator granted. A policy without a claim is sent everything that was granted; an
 * empty array claims nothing. Claims that the gateway would reject are rejected here, where the author sees the error.
 */

import { RegistrationError } from './errors.js';
import { checkedPointers, tokensOf } from './pointers.js';

/** As `inputs` or `writes`: all places. */
export const EVERYTHING = Symbol.for('admission-worker.everything');

/** @typedef {readonly string[] | typeof EVERYTHING | undefined} Claim JSON Pointers, EVERYTHING, or not declared */

/**
 * The first segment of an input: the members of an AdmissionRequest (admission.k8s.io/v1) except `uid`, and
 * `namespaceObject`, which the gateway adds for policies that claim it.
 */
export const MEMBERS = Object.freeze([
  ...['kind', 'resource', 'subResource', 'requestKind', 'requestResource', 'requestSubResource'],
  ...['name', 'namespace', 'operation', 'userInfo', 'object', 'oldObject', 'dryRun', 'options'],
  'namespaceObject',
]);

/** Members of an object that no policy can change. */
const KIND = ['apiVersion', 'kind'];

/**
 * Check a claim of inputs.
 *
 * @param {unknown} places JSON Pointers over the AdmissionRequest (`*` is every element or member), EVERYTHING, or
 *   undefined
 * @param {string} what names the claim in errors
 * @returns {Claim}
 * @throws {RegistrationError} not a JSON Pointer, not a member of an AdmissionRequest, or `uid`
 */
export function inputsClaim(places, what) {
  if (places === undefined || places === EVERYTHING) return /** @type {Claim} */ (places);
  const pointers = checkedPointers(places, what);
  for (const place of pointers) {
    const [first] = tokensOf(place);
    if (first === 'uid') {
      throw new RegistrationError(`${what}: no verdict may depend on "/uid", which is not part of a document`);
    }
    if (!MEMBERS.includes(first)) {
      const has = MEMBERS.join(', ');
      throw new RegistrationError(
        `${what}: ${JSON.stringify(place)} is no place in an AdmissionRequest, which has ${has}`,
      );
    }
  }
  return pointers;
}

/**
 * Check a claim of writes.
 *
 * @param {unknown} places JSON Pointers over the object (`*` is every element or member), EVERYTHING, or undefined
 * @param {string} what as for `inputsClaim`
 * @returns {Claim}
 * @throws {RegistrationError} not a JSON Pointer, or one that holds `apiVersion` or `kind`
 */
export function writesClaim(places, what) {
  if (places === undefined || places === EVERYTHING) return /** @type {Claim} */ (places);
  const pointers = checkedPointers(places, what);
  for (const place of pointers) {
    if (KIND.includes(tokensOf(place)[0]) || place === '/*') {
      const shown = JSON.stringify(place);
      throw new RegistrationError(
        `${what}: ${shown} is or holds the object's kind, which cannot be changed; name other members`,
      );
    }
  }
  return pointers;
}

/**
 * The claim as the contract's message; undefined, which leaves the field unset, if there is none.
 *
 * @param {Claim} places
 * @returns {object | undefined}
 */
export function messageOfClaim(places) {
  if (places === undefined) return undefined;
  return places === EVERYTHING ? { everything: {} } : { pointers: { pointers: places } };
}
