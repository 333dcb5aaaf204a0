/**
 * The document of a policy: the parts of an AdmissionRequest that it claims, as the gateway selects them.
 *
 * - `kind`, `resource`, `subResource`, `operation` and `dryRun` are always present; `uid` never; `namespaceObject` only
 *   if it is claimed.
 * - A claimed value that exists is present, and so is every existing object or array on its path. Order is kept.
 * - Arrays keep length and positions: an element that no claim reaches is `{}`, `[]` or null, by its type.
 * - Where claims overlap, the wider wins.
 *
 * The gateway does this; `admission-worker/testing` repeats it, so that a policy that reads more than it claims fails
 * its tests.
 */

import { EVERYTHING } from './claims.js';
import { tokensOf } from './pointers.js';
import { isObject } from './values.js';

/** Members of every document. */
const ALWAYS = ['kind', 'resource', 'subResource', 'operation', 'dryRun'];

/** Not part of "everything": `uid` is never sent, and `namespaceObject` is no member of the request itself. */
const NOT_IN_EVERYTHING = ['uid', 'namespaceObject'];

/** @typedef {readonly string[]} Path */

/**
 * The document for a policy with these inputs.
 *
 * @param {Readonly<Record<string, unknown>>} request an AdmissionRequest in its JSON shape
 * @param {import('./claims.js').Claim} inputs the policy's claim; undefined is everything
 * @returns {Record<string, unknown>} it shares its values with the request
 */
export function documentOf(request, inputs) {
  if (inputs === undefined || inputs === EVERYTHING) {
    return Object.fromEntries(Object.entries(request).filter(([name]) => !NOT_IN_EVERYTHING.includes(name)));
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
 * The part of a value that the paths reach; of a value that none reaches, an empty one of its type.
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
 * The rests of the paths that pass through this member or element.
 *
 * @param {readonly Path[]} paths
 * @param {string} name
 * @returns {Path[]}
 */
function pathsBelow(paths, name) {
  return paths.filter(([first]) => first === name || first === '*').map(path => path.slice(1));
}
