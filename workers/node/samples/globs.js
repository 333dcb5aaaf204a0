/**
 * Globs over texts: `*` is any characters, slashes too; `?` is one; `[abc]`, `[a-z]` and `[!a]` are one of a set. As
 * Python's `fnmatchcase`, but without a regular expression: after a mismatch only the last star is extended, by one
 * character, so a match takes at most time proportional to pattern times text.
 */

/** @typedef {'*' | ((character: string) => boolean)} Part */

/**
 * Whether a whole text matches.
 *
 * @param {string} text
 * @param {string} glob
 * @returns {boolean}
 */
export function matchesGlob(text, glob) {
  const parts = partsOf(glob);
  const characters = Array.from(text);
  let part = 0;
  let at = 0;
  let star = -1;
  let starEnd = 0;
  while (at < characters.length) {
    const wanted = parts[part];
    if (wanted === '*') {
      star = part++;
      starEnd = at;
    } else if (wanted?.(characters[at])) {
      part += 1;
      at += 1;
    } else if (star >= 0) {
      part = star + 1;
      at = ++starEnd;
    } else {
      return false;
    }
  }
  return parts.slice(part).every(rest => rest === '*');
}

/**
 * @param {string} glob
 * @returns {Part[]}
 */
function partsOf(glob) {
  const characters = Array.from(glob);
  /** @type {Part[]} */
  const parts = [];
  for (let at = 0; at < characters.length; at++) {
    const one = characters[at];
    const end = one === '[' ? endOfSet(characters, at + 1) : -1;
    if (one === '*') parts.push('*');
    else if (one === '?') parts.push(() => true);
    else if (end < 0) parts.push(character => character === one);
    else {
      parts.push(setOf(characters.slice(at + 1, end)));
      at = end;
    }
  }
  return parts;
}

/**
 * The index of a set's closing bracket; -1: there is none, and `[` stands for itself. Directly after `[` or `[!` it is a
 * member of the set.
 *
 * @param {string[]} characters
 * @param {number} from
 * @returns {number}
 */
function endOfSet(characters, from) {
  const first = characters[from] === '!' ? from + 1 : from;
  return characters.indexOf(']', characters[first] === ']' ? first + 1 : first);
}

/**
 * @param {string[]} inside what stands between the brackets
 * @returns {(character: string) => boolean}
 */
function setOf(inside) {
  const isNegated = inside[0] === '!';
  /** @type {[number, number][]} */
  const ranges = [];
  for (let at = isNegated ? 1 : 0; at < inside.length; at++) {
    const isRange = inside[at + 1] === '-' && at + 2 < inside.length;
    const last = isRange ? at + 2 : at;
    ranges.push([codeOf(inside[at]), codeOf(inside[last])]);
    at = last;
  }
  return character => {
    const code = codeOf(character);
    return ranges.some(([first, last]) => first <= code && code <= last) !== isNegated;
  };
}

/** @param {string} character */
function codeOf(character) {
  return /** @type {number} */ (character.codePointAt(0));
}
