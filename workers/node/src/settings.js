/**
 * A policy's settings: JSON from the operator's configuration, checked before the policy is called.
 *
 * Settings are one JSON object; no settings are `{}`. The author's JSON Schema (2020-12) describes them, and a function
 * checks what a schema cannot express. The same check runs in `ValidateSettings` (when the configuration is loaded) and
 * before the first call. Equal settings have equal bytes, so settings are cached by their bytes (`settings_cache.js`),
 * frozen, and shared between calls.
 */

import { isUtf8 } from 'node:buffer';
import Ajv2020 from 'ajv/dist/2020.js';
import { InvalidSettingsError, RegistrationError, reasonOf, SettingsError, SettingsWarning } from './errors.js';
import { remember } from './fidelity.js';
import { positionOf } from './request.js';
import { errorsOf } from './schema_errors.js';
import { isObject, typeOf } from './values.js';

/** @typedef {SettingsError | SettingsWarning | string} Finding an error (a text: of the settings as a whole) or a warning */
/** @typedef {(settings: any) => Iterable<Finding> | Finding | null | undefined | void} Validate an author's own check */
/** @typedef {Readonly<Record<string, unknown>>} Schema a JSON Schema (2020-12) of an object */

const DIALECT = 'https://json-schema.org/draft/2020-12/schema';

/** The settings of a policy that has none: `{}` and nothing else. */
const NO_SETTINGS = Object.freeze({ type: 'object', properties: {}, additionalProperties: false });

/** Keywords with which `properties` does not list all allowed members. */
const OPEN_ENDED = [
  ...['additionalProperties', 'patternProperties', 'unevaluatedProperties', 'propertyNames'],
  ...['allOf', 'anyOf', 'oneOf', 'if', 'dependentSchemas', '$ref', '$dynamicRef'],
];

const ajv = new Ajv2020.default({
  allErrors: true,
  verbose: true,
  useDefaults: true,
  // A mistyped keyword is an error at startup. The other checks of strict mode are a matter of style.
  strict: true,
  strictTypes: false,
  strictTuples: false,
  strictRequired: false,
  // "format" is an annotation in 2020-12.
  validateFormats: false,
  // Two policies may have schemas of the same $id.
  addUsedSchema: false,
  logger: false,
});

/** The schema and the check of a policy's settings. */
export class SettingsType {
  #check;
  #validate;
  #known;

  /**
   * @param {unknown} schema undefined: the policy has no settings
   * @param {unknown} validate the author's own check, if any
   * @param {string} what names the policy in errors
   * @throws {RegistrationError} an invalid schema, or one not of an object; a check that is not a plain function
   */
  constructor(schema, validate, what) {
    this.schema = schema === undefined ? NO_SETTINGS : checkedSchema(schema, what);
    /** Whether the policy has no settings. */
    this.isNone = schema === undefined;
    this.#validate = checkedValidate(validate, what);
    this.#known = OPEN_ENDED.some(keyword => keyword in this.schema) ? undefined : this.schema.properties;
    try {
      this.#check = ajv.compile(this.schema);
    } catch (error) {
      throw new RegistrationError(`${what}: settings: no JSON Schema (2020-12): ${reasonOf(error)}`);
    }
  }

  /** The schema as JSON text. */
  schemaText() {
    return JSON.stringify({ $schema: DIALECT, ...this.schema });
  }

  /**
   * Parse and check settings.
   *
   * @param {Buffer} raw one JSON object in UTF-8
   * @returns {{ settings: any, warnings: readonly string[] }} the frozen settings, and warnings
   * @throws {InvalidSettingsError} all errors
   */
  read(raw) {
    const settings = parsed(raw);
    if (!this.#check(settings)) throw new InvalidSettingsError(errorsOf(this.#check.errors ?? []));
    const ignored = this.#ignored(settings);
    deepFreeze(settings);
    return { settings, warnings: [...ignored, ...this.#checked(settings)] };
  }

  /** @param {Record<string, unknown>} settings */
  #ignored(settings) {
    const known = this.#known;
    if (!isObject(known)) return [];
    return Object.keys(settings)
      .filter(name => !Object.hasOwn(known, name))
      .map(name => `/${name} is no member of these settings and is ignored`);
  }

  /**
   * Run the author's check: return its warnings, throw its errors.
   *
   * @param {Record<string, unknown>} settings
   * @returns {string[]}
   */
  #checked(settings) {
    if (this.#validate === undefined) return [];
    let findings;
    try {
      findings = findingsOf(this.#validate(settings));
    } catch (error) {
      const type = error instanceof Error ? error.name : typeOf(error);
      const message = `The settings could not be checked: ${type} in the worker; see its log`;
      throw new InvalidSettingsError([new SettingsError('', message)], { cause: error });
    }
    const warnings = findings.filter(finding => finding instanceof SettingsWarning);
    const errors = findings.filter(finding => !(finding instanceof SettingsWarning));
    if (errors.length > 0) {
      throw new InvalidSettingsError(
        errors.map(error => (error instanceof SettingsError ? error : new SettingsError('', String(error)))),
      );
    }
    return warnings.map(warning => warning.message);
  }
}

/**
 * @param {Buffer} raw
 * @returns {Record<string, unknown>}
 */
function parsed(raw) {
  const text = raw.toString();
  let value;
  try {
    value = isUtf8(raw) ? JSON.parse(text) : undefined;
  } catch (error) {
    const message = `The settings must be one JSON object, never empty: ${positionOf(error, text)}`;
    throw new InvalidSettingsError([new SettingsError('', message)]);
  }
  if (!isObject(value)) {
    const found = value === undefined ? 'what is no UTF-8' : typeOf(value);
    throw new InvalidSettingsError([new SettingsError('', `The settings must be one JSON object, found ${found}`)]);
  }
  remember(value, text, { order: true });
  return value;
}

/**
 * @param {unknown} given the result of the author's check
 * @returns {Finding[]}
 */
function findingsOf(given) {
  if (given === undefined || given === null) return [];
  if (typeof given === 'string' || given instanceof SettingsError || given instanceof SettingsWarning) return [given];
  const findings = /** @type {Iterable<Finding>} */ (given);
  if (typeof findings[Symbol.iterator] !== 'function')
    throw new TypeError('validate: must return an array of findings');
  return [...findings];
}

/**
 * @param {unknown} schema
 * @param {string} what
 * @returns {Schema}
 */
function checkedSchema(schema, what) {
  if (!isObject(schema) || schema.type !== 'object') {
    throw new RegistrationError(`${what}: settings: must be a JSON Schema of an object: { type: 'object', ... }`);
  }
  return schema;
}

/**
 * @param {unknown} validate
 * @param {string} what
 * @returns {Validate | undefined}
 */
function checkedValidate(validate, what) {
  if (validate === undefined) return undefined;
  if (typeof validate !== 'function' || /^Async/.test(validate.constructor.name)) {
    throw new RegistrationError(`${what}: validate: must be a plain function of the settings, is ${typeOf(validate)}`);
  }
  return /** @type {Validate} */ (validate);
}

/** @param {object} value */
function deepFreeze(value) {
  for (const part of Object.values(value)) {
    if (typeof part === 'object' && part !== null) deepFreeze(part);
  }
  Object.freeze(value);
}
