/**
 * An author's claim of what a policy reads, checked.
 *
 * @param {unknown} places JSON Pointers over the AdmissionRequest (`*` is every element or member), EVERYTHING, or
 *   undefined
 * @param {string} what who claims it, for the error
 * @returns {Claim}
 * @throws {RegistrationError} something that is no JSON Pointer, or that no AdmissionRequest has, or its `uid`
 */
export function inputsClaim(places: unknown, what: string): Claim;
/**
 * An author's claim of what a policy changes, checked.
 *
 * @param {unknown} places JSON Pointers over the object (`*` is every element or member), EVERYTHING, or undefined
 * @param {string} what as for `inputsClaim`
 * @returns {Claim}
 * @throws {RegistrationError} something that is no JSON Pointer, or what kind of object it is
 */
export function writesClaim(places: unknown, what: string): Claim;
/**
 * The claim as the contract's message; undefined where it is not said, which leaves the field unset.
 *
 * @param {Claim} places
 * @returns {object | undefined}
 */
export function messageOfClaim(places: Claim): object | undefined;
/** As `inputs` or `writes`: every place there is. */
export const EVERYTHING: unique symbol;
/** @typedef {readonly string[] | typeof EVERYTHING | undefined} Claim JSON Pointers, EVERYTHING, or not said */
/**
 * What an input can begin with: the members of an AdmissionRequest (admission.k8s.io/v1) but `uid`, and the Namespace,
 * which the gateway adds for whoever names it.
 */
export const MEMBERS: readonly string[];
/**
 * JSON Pointers, EVERYTHING, or not said
 */
export type Claim = readonly string[] | typeof EVERYTHING | undefined;
