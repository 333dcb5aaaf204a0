/**
 * Regular expressions, RE2's: whatever the pattern and the text, a match takes time in proportion to the text.
 *
 * JavaScript's own backtrack: `(a+)+` against thirty letters holds a worker up for minutes. RE2 refuses what would need
 * that (back-references, look-around), and is the same in every language that the samples are written in.
 */

import { RE2JS } from 're2js';

/** Compiled patterns that are kept: more than a configuration has different ones. */
const KEPT = 128;

/** @type {Map<string, RE2JS>} */
const kept = new Map();

/**
 * Whether it is a regular expression.
 *
 * @param {string} text
 * @returns {boolean}
 */
export function isPattern(text) {
  try {
    compiled(text);
    return true;
  } catch {
    return false;
  }
}

/**
 * Whether the whole value matches.
 *
 * @param {string} pattern
 * @param {string} value
 * @returns {boolean}
 */
export function matches(pattern, value) {
  return compiled(pattern).matches(value);
}

/** @param {string} pattern */
function compiled(pattern) {
  const found = kept.get(pattern) ?? RE2JS.compile(pattern);
  kept.delete(pattern);
  kept.set(pattern, found);
  const [oldest] = kept.keys();
  if (kept.size > KEPT) kept.delete(oldest);
  return found;
}
