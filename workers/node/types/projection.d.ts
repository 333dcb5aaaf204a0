/** @typedef {readonly string[]} Path */
/**
 * The document for a policy with these inputs.
 *
 * @param {Readonly<Record<string, unknown>>} request an AdmissionRequest in its JSON shape
 * @param {import('./claims.js').Claim} inputs the policy's claim; undefined is everything
 * @returns {Record<string, unknown>} it shares its values with the request
 */
export function documentOf(request: Readonly<Record<string, unknown>>, inputs: import("./claims.js").Claim): Record<string, unknown>;
export type Path = readonly string[];
