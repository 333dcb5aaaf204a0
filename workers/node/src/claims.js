/**
 * Which places a policy reads and writes: everything, exactly these, or not said. Three different things in the
 * contract.
 *
 * A claim can only narrow what the operator granted. "Not said" is sent whatever was granted; "nothing" is an empty
 * array. What the gateway would refuse is refused here, where the author sees it.
 */

import { RegistrationError } from './errors.js';
import { checkedPointers, tokensOf } from './pointers.js';

/** As `inputs` or `writes`: every place there is. */
export const EVERYTHING = Symbol.for('admission-worker.everything');

/** @typedef {readonly string[] | typeof EVERYTHING | undefined} Claim JSON Pointers, EVERYTHING, or not said */

/**
 * What an input can begin with: the members of an AdmissionRequest (admission.k8s.io/v1) but `uid`, and the Namespace,
 * which the gateway adds for whoever names it.
 */
export const MEMBERS = Object.freeze([
  ...['kind', 'resource', 'subResource', 'requestKind', 'requestResource', 'requestSubResource'],
  ...['name', 'namespace', 'operation', 'userInfo', 'object', 'oldObject', 'dryRun', 'options'],
  'namespaceObject',
]);

/** Members of an object that nobody changes: another kind of object is no changed object. */
const KIND = ['apiVersion', 'kind'];

/**
 * An author's claim of what a policy reads, checked.
 *
 * @param {unknown} places JSON Pointers over the AdmissionRequest (`*` is every element or member), EVERYTHING, or
 *   undefined
 * @param {string} what who claims it, for the error
 * @returns {Claim}
 * @throws {RegistrationError} something that is no JSON Pointer, or that no AdmissionRequest has, or its `uid`
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
 * An author's claim of what a policy changes, checked.
 *
 * @param {unknown} places JSON Pointers over the object (`*` is every element or member), EVERYTHING, or undefined
 * @param {string} what as for `inputsClaim`
 * @returns {Claim}
 * @throws {RegistrationError} something that is no JSON Pointer, or what kind of object it is
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
 * The claim as the contract's message; undefined where it is not said, which leaves the field unset.
 *
 * @param {Claim} places
 * @returns {object | undefined}
 */
export function messageOfClaim(places) {
  if (places === undefined) return undefined;
  return places === EVERYTHING ? { everything: {} } : { pointers: { pointers: places } };
}
