/**
 * Check a claim of inputs.
 *
 * @param {unknown} places JSON Pointers over the AdmissionRequest (`*` is every element or member), EVERYTHING, or
 *   undefined
 * @param {string} what names the claim in errors
 * @returns {Claim}
 * @throws {RegistrationError} not a JSON Pointer, not a member of an AdmissionRequest, or `uid`
 */
export function inputsClaim(places: unknown, what: string): Claim;
/**
 * Check a claim of writes.
 *
 * @param {unknown} places JSON Pointers over the object (`*` is every element or member), EVERYTHING, or undefined
 * @param {string} what as for `inputsClaim`
 * @returns {Claim}
 * @throws {RegistrationError} not a JSON Pointer, or one that holds `apiVersion` or `kind`
 */
export function writesClaim(places: unknown, what: string): Claim;
/**
 * The claim as the contract's message; undefined, which leaves the field unset, if there is none.
 *
 * @param {Claim} places
 * @returns {object | undefined}
 */
export function messageOfClaim(places: Claim): object | undefined;
/** As `inputs` or `writes`: all places. */
export const EVERYTHING: unique symbol;
/** @typedef {readonly string[] | typeof EVERYTHING | undefined} Claim JSON Pointers, EVERYTHING, or not declared */
/**
 * The first segment of an input: the members of an AdmissionRequest (admission.k8s.io/v1) except `uid`, and
 * `namespaceObject`, which the gateway adds for policies that claim it.
 */
export const MEMBERS: readonly string[];
/**
 * JSON Pointers, EVERYTHING, or not declared
 */
export type Claim = readonly string[] | typeof EVERYTHING | undefined;
