/**
 * A policy: a name, a phase, a function, its settings and its claims.
 *
 * Each is checked at registration, so an author's error is reported when the worker's module is loaded. The worker
 * serves only if all policies are valid.
 */

import { inputsClaim, messageOfClaim, writesClaim } from './claims.js';
import { RegistrationError } from './errors.js';
import { PHASES } from './messages.js';
import { SettingsType } from './settings.js';
import { isObject, typeOf } from './values.js';

/** @typedef {'mutating' | 'validating'} Phase Kubernetes' two admission phases */
/** @typedef {import('./answers.js').Answer | null | undefined | void} Returned nothing is `allow()` */

/**
 * A policy's function: it judges a request, and returns an answer or a promise of one.
 *
 * @template S, T
 * @typedef {(request: import('./request.js').Request<T>, settings: S) => Returned | PromiseLike<Returned>} PolicyFunction
 */

/**
 * Options of a policy.
 *
 * @template [S=any] the type of the settings
 * @typedef {object} ValidatingOptions
 * @property {import('./settings.js').Schema} [settings] a JSON Schema (2020-12) of its settings; a `default` in it is
 *   filled in. Default: the policy has no settings, and accepts `{}`
 * @property {(settings: S) => Iterable<import('./settings.js').Finding> | import('./settings.js').Finding | null | undefined | void} [validate]
 *   checks settings that satisfy the schema further: returns errors (SettingsError or a text) and warnings
 *   (SettingsWarning)
 * @property {readonly string[] | typeof import('./claims.js').EVERYTHING} [inputs] which parts of the AdmissionRequest
 *   it reads, as JSON Pointers such as `/object/metadata/labels` (a segment `*` is every element or member), or
 *   EVERYTHING. The policy is sent only these, and they are part of the cache key. Default: all that is granted
 * @property {string} [version] of the policy, if it changes more rarely than the worker's
 * @property {string} [description] for the operator, one or two sentences
 */

/**
 * As ValidatingOptions, and the places that the policy changes.
 *
 * @template [S=any] the type of the settings
 * @typedef {ValidatingOptions<S> & {
 *   writes?: readonly string[] | typeof import('./claims.js').EVERYTHING
 * }} MutatingOptions `writes`: which parts of the object it may change, as JSON Pointers over the object such as
 *   `/metadata/labels`, or EVERYTHING. Default: all that is granted
 */

/**
 * RFC 1123's label as Kubernetes has it: "at most 63 characters, only lowercase alphanumeric characters or '-', start
 * and end with an alphanumeric character".
 */
const DNS_LABEL = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

const KNOWN = ['settings', 'validate', 'inputs', 'version', 'description'];

/** One registered policy. */
export class Policy {
  /**
   * @param {string} name a DNS-1123 label
   * @param {Phase} phase in which it is called
   * @param {unknown} given the author's options
   * @param {unknown} judge the author's function
   * @throws {RegistrationError} an invalid name or option, or no function
   */
  constructor(name, phase, given, judge) {
    if (typeof name !== 'string' || !DNS_LABEL.test(name)) {
      throw new RegistrationError(
        `policy ${JSON.stringify(name)}: the name must be a DNS-1123 label such as "required-labels"`,
      );
    }
    const what = `policy ${name}`;
    const options = checkedOptions(given, phase, what);
    if (typeof judge !== 'function') {
      throw new RegistrationError(
        `${what}: must have a function of the request and the settings, has ${typeOf(judge)}`,
      );
    }
    this.name = name;
    this.phase = phase;
    this.judge = /** @type {PolicyFunction<any, any>} */ (judge);
    this.settings = new SettingsType(options.settings, options.validate, what);
    this.inputs = inputsClaim(options.inputs, `${what}: inputs`);
    this.writes = writesClaim(options.writes, `${what}: writes`);
    this.version = text(options.version, `${what}: version`);
    this.description = text(options.description, `${what}: description`);
    Object.freeze(this);
  }

  /** Its PolicyDescription in the response of `Describe`. */
  descriptionMessage() {
    return {
      name: this.name,
      version: this.version,
      phases: [PHASES[this.phase]],
      inputs: messageOfClaim(this.inputs),
      writes: messageOfClaim(this.writes),
      settingsSchema: Buffer.from(this.settings.schemaText()),
      description: this.description,
    };
  }
}

/**
 * @param {unknown} given
 * @param {Phase} phase
 * @param {string} what
 * @returns {Record<string, unknown>}
 */
function checkedOptions(given, phase, what) {
  if (!isObject(given))
    throw new RegistrationError(`${what}: its options must be a plain object, are ${typeOf(given)}`);
  if (phase === 'validating' && given.writes !== undefined) {
    throw new RegistrationError(`${what}: writes: a validating policy changes nothing; register it with mutating()`);
  }
  const known = phase === 'mutating' ? [...KNOWN, 'writes'] : KNOWN;
  for (const name of Object.keys(given)) {
    if (given[name] !== undefined && !known.includes(name)) {
      throw new RegistrationError(`${what}: no option ${name}; there are ${known.join(', ')}`);
    }
  }
  if (given.validate !== undefined && given.settings === undefined) {
    throw new RegistrationError(`${what}: validate: there are no settings to check; say settings`);
  }
  return given;
}

/**
 * @param {unknown} value
 * @param {string} what
 * @returns {string}
 */
function text(value, what) {
  if (value === undefined) return '';
  if (typeof value === 'string') return value;
  throw new RegistrationError(`${what}: must be text, is ${typeOf(value)}`);
}
