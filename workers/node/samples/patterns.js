/**
 * RE2's regular expressions: for any pattern and text, a match takes time proportional to the text.
 *
 * JavaScript's own backtrack: `(a+)+` against thirty letters blocks a worker for minutes. RE2 rejects patterns that
 * need backtracking (back-references, look-around), and is the same in all languages of the samples.
 */

import { RE2JS } from 're2js';

/** The number of cached patterns: more than a configuration has. */
const CACHE_SIZE = 128;

/** @type {Map<string, RE2JS>} */
const cache = new Map();

/**
 * Whether a text is a regular expression.
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
  const found = cache.get(pattern) ?? RE2JS.compile(pattern);
  cache.delete(pattern);
  cache.set(pattern, found);
  const [oldest] = cache.keys();
  if (cache.size > CACHE_SIZE) cache.delete(oldest);
  return found;
}
