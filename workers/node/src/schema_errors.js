/** Errors of a JSON Schema as SettingsErrors with Kubernetes' messages, each at its own JSON Pointer. */

import { SettingsError } from './errors.js';
import { pointer } from './pointers.js';
import { isObject, typeOf } from './values.js';

/** @typedef {import('ajv').ErrorObject} ErrorObject */

/**
 * Convert ajv's errors.
 *
 * @param {readonly ErrorObject[]} found by ajv, verbose
 * @returns {SettingsError[]}
 */
export function errorsOf(found) {
  return found.map(error => {
    const below = memberOf(error);
    return new SettingsError(error.instancePath + (below === undefined ? '' : pointer(below)), messageOf(error));
  });
}

/**
 * The member that an error is about, if ajv reports the error at its parent.
 *
 * @param {ErrorObject} error
 * @returns {string | undefined}
 */
function memberOf({ keyword, params }) {
  switch (keyword) {
    case 'required':
    case 'dependentRequired':
      return params.missingProperty;
    case 'additionalProperties':
      return params.additionalProperty;
    case 'unevaluatedProperties':
      return params.unevaluatedProperty;
    case 'propertyNames':
      return params.propertyName;
    default:
      return undefined;
  }
}

/**
 * @param {ErrorObject} error
 * @returns {string}
 */
function messageOf({ keyword, params, message, data, parentSchema }) {
  switch (keyword) {
    case 'required':
      return 'Required value';
    case 'additionalProperties':
    case 'unevaluatedProperties': {
      const known = isObject(parentSchema?.properties) ? Object.keys(parentSchema.properties).sort() : [];
      return `Unknown member; known are: ${known.join(', ') || 'none'}`;
    }
    case 'type':
      return `must be ${[params.type].flat().join(' or ')}, is ${jsonTypeOf(data)}`;
    case 'enum':
      return `must be one of ${params.allowedValues.map((/** @type {unknown} */ one) => JSON.stringify(one)).join(', ')}`;
    default:
      return message ?? `does not satisfy ${keyword}`;
  }
}

/**
 * @param {unknown} value
 * @returns {string}
 */
function jsonTypeOf(value) {
  return isObject(value) ? 'object' : typeOf(value).replace(/^an /, '');
}
