/**
 * What a policy is sent: the parts of an AdmissionRequest that it claims, as the gateway cuts them out.
 *
 * - `kind`, `resource`, `subResource`, `operation` and `dryRun` always; `uid` never; `namespaceObject` only if it is
 *   named.
 * - A claimed value that exists appears, and so does every existing object or array on the way to one. What does not
 *   exist does not appear. Order stays.
 * - Arrays keep length and positions: an element that no claim reaches is `{}`, `[]` or null, by its own kind.
 * - Where claims overlap, the wider wins.
 *
 * The gateway does this; here it serves tests, so that a policy which reads more than it claims fails before it is
 * deployed.
 */

import { EVERYTHING } from './claims.js';
import { tokensOf } from './pointers.js';
import { isObject } from './values.js';

/** Members of every document. */
const ALWAYS = ['kind', 'resource', 'subResource', 'operation', 'dryRun'];

/** What "everything" does not hold: nobody is sent the one, and the other is no member of the request itself. */
const NEVER_CALLED = ['uid', 'namespaceObject'];

/** @typedef {readonly string[]} Path */

/**
 * The document for a policy with these inputs.
 *
 * @param {Readonly<Record<string, unknown>>} request an AdmissionRequest in its JSON shape
 * @param {import('./claims.js').Claim} inputs what the policy claims; undefined (not said) is everything
 * @returns {Record<string, unknown>} it shares its values with the request
 */
export function documentOf(request, inputs) {
  if (inputs === undefined || inputs === EVERYTHING) {
    return Object.fromEntries(Object.entries(request).filter(([name]) => !NEVER_CALLED.includes(name)));
  }
  return members(request, [...ALWAYS.map(name => [name]), ...inputs.map(tokensOf)]);
}

/**
 * @param {Readonly<Record<string, unknown>>} value
 * @param {readonly Path[]} paths
 * @returns {Record<string, unknown>}
 */
function members(value, paths) {
  /** @type {[string, unknown][]} */
  const found = [];
  for (const [name, part] of Object.entries(value)) {
    const below = pathsBelow(paths, name);
    if (below.some(path => path.length === 0)) found.push([name, part]);
    else if (below.length > 0 && (isObject(part) || Array.isArray(part))) found.push([name, cut(part, below)]);
  }
  return Object.fromEntries(found);
}

/**
 * What the paths reach of a value; of one that they do not reach, its kind.
 *
 * @param {unknown} value
 * @param {readonly Path[]} paths
 * @returns {unknown}
 */
function cut(value, paths) {
  if (paths.some(path => path.length === 0)) return value;
  if (Array.isArray(value)) {
    return paths.length === 0 ? [] : value.map((part, index) => cut(part, pathsBelow(paths, String(index))));
  }
  return isObject(value) ? members(value, paths) : null;
}

/**
 * The paths that go through this member or element, from there on.
 *
 * @param {readonly Path[]} paths
 * @param {string} name
 * @returns {Path[]}
 */
function pathsBelow(paths, name) {
  return paths.filter(([first]) => first === name || first === '*').map(path => path.slice(1));
}
