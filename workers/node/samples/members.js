/**
 * Members of objects whose keys the user chooses. A JavaScript object inherits members: `labels.constructor` is a
 * function, whatever labels there are.
 */

/**
 * An object's own member.
 *
 * @param {unknown} value
 * @param {string} name
 * @returns {any} undefined if there is none, or the value is not an object
 */
export function member(value, name) {
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

/**
 * @param {unknown} value
 * @returns {value is Record<string, any>} whether it is a JSON object
 */
export function isObject(value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * The value if it is text, else `''`.
 *
 * @param {unknown} value
 * @returns {string}
 */
export function text(value) {
  return typeof value === 'string' ? value : '';
}

/**
 * Whether a value is undefined, null, `{}`, `[]`, `''`, 0 or false.
 *
 * @param {unknown} value
 * @returns {boolean}
 */
export function isEmpty(value) {
  return typeof value === 'object' && value !== null ? Object.keys(value).length === 0 : !value;
}
