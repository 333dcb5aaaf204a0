/**
 * What a policy is: a name, a phase, a function, its settings and what it claims. Checked when it is registered.
 *
 * A mistake in a registration is the author's, and shows when the worker's module is loaded: nothing is served until
 * all policies are sound.
 */

import { inputsClaim, messageOfClaim, writesClaim } from './claims.js';
import { RegistrationError } from './errors.js';
import { PHASES } from './messages.js';
import { SettingsType } from './settings.js';
import { isObject, typeOf } from './values.js';

/** @typedef {'mutating' | 'validating'} Phase Kubernetes' two admission phases */
/** @typedef {import('./answers.js').Answer | null | undefined | void} Returned nothing is `allow()` */

/**
 * A policy's function: it judges a request, at once or in time.
 *
 * @template S, T
 * @typedef {(request: import('./request.js').Request<T>, settings: S) => Returned | PromiseLike<Returned>} PolicyFunction
 */

/**
 * What can be said of a policy besides its name and its function.
 *
 * @template [S=any] the type of the settings
 * @typedef {object} ValidatingOptions
 * @property {import('./settings.js').Schema} [settings] a JSON Schema (2020-12) of its settings; default: it has none,
 *   and accepts `{}`. A `default` in it is filled in
 * @property {(settings: S) => Iterable<import('./settings.js').Finding> | import('./settings.js').Finding | null | undefined | void} [validate]
 *   a further check of settings that satisfy the schema: gives what is wrong (SettingsError or a text), and what to
 *   warn about (SettingsWarning)
 * @property {readonly string[] | typeof import('./claims.js').EVERYTHING} [inputs] which parts of the AdmissionRequest
 *   it reads, as JSON Pointers such as `/object/metadata/labels` (a segment `*` is every element or member), or
 *   EVERYTHING; default: not said. The policy is sent no more than that, and verdicts are cached by it
 * @property {string} [version] its own, where it changes more rarely than the worker's
 * @property {string} [description] for the operator, one or two sentences
 */

/**
 * As ValidatingOptions, and what the policy changes.
 *
 * @template [S=any] the type of the settings
 * @typedef {ValidatingOptions<S> & {
 *   writes?: readonly string[] | typeof import('./claims.js').EVERYTHING
 * }} MutatingOptions `writes`: which parts of the object it may change, as JSON Pointers over the object such as
 *   `/metadata/labels`, or EVERYTHING; default: not said
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
   * @param {Phase} phase the phase in which it can be used
   * @param {unknown} given the author's options
   * @param {unknown} judge the author's function
   * @throws {RegistrationError} a name that is no label, a wrong option, or no function
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

  /** What `Describe` says about it. */
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
