/**
 * A policy's answers: allow, deny, or that it could not judge.
 *
 * An error is not a verdict: `fail` gives no verdict, and the operator's failurePolicy decides whether the request
 * passes; a denial does not depend on the failurePolicy. Answers are frozen and always valid: an invalid one throws
 * `InvalidAnswerError` where it is made, and the policy's outcome is then a failure.
 */

import { jsonPatch, mergePatch, wholeObject } from './changes.js';
import { InvalidAnswerError } from './errors.js';
import { int32, isObject, listOf, object, options, text, typeOf } from './values.js';

/** The contract's: "letters, digits, `-`, `_`, `.`, at most 63". */
const AUDIT_KEY = /^[A-Za-z0-9._-]{1,63}$/;

/** metav1.StatusReason of a code, in Kubernetes' own pairs (k8s.io/apimachinery/pkg/apis/meta/v1/types.go). */
const REASONS = new Map([
  [400, 'BadRequest'],
  [401, 'Unauthorized'],
  [403, 'Forbidden'],
  [404, 'NotFound'],
  [405, 'MethodNotAllowed'],
  [406, 'NotAcceptable'],
  [409, 'Conflict'],
  [410, 'Gone'],
  [413, 'RequestEntityTooLarge'],
  [415, 'UnsupportedMediaType'],
  [422, 'Invalid'],
  [429, 'TooManyRequests'],
  [500, 'InternalError'],
  [503, 'ServiceUnavailable'],
  [504, 'Timeout'],
]);

/** Seconds of a hundred years. A protobuf Duration holds 10,000 years; a time this long is an error in any case. */
export const LONGEST_CACHE = 36_500 * 24 * 3600;

/** As `cache`: this verdict must never be reused. */
export const NO_STORE = Symbol.for('admission-worker.no-store');

/**
 * Options of every answer but `fail`.
 *
 * @typedef {object} AnswerOptions
 * @property {Iterable<string>} [warnings] shown to the user by kubectl; each under 120 characters, without control
 *   characters
 * @property {Readonly<Record<string, string>>} [auditAnnotations] for the API server's audit log. Keys: 1 to 63
 *   letters, digits, `-`, `_`, `.`. The values must be the same for the same document and settings
 * @property {number | typeof NO_STORE} [cache] for how many seconds this verdict may be reused, or NO_STORE; it can
 *   only shorten what the operator configured. Default: as configured
 */

/**
 * One thing that is wrong (a metav1.StatusCause).
 *
 * @typedef {object} Cause
 * @property {string} field in Kubernetes' notation, such as `spec.containers[0].image`
 * @property {string} message for people
 * @property {string} [reason] a metav1.CauseType such as `FieldValueRequired`; default `FieldValueInvalid`
 */

/**
 * What a denial is about (a metav1.StatusDetails without its causes).
 *
 * @typedef {object} Details
 * @property {string} [name]
 * @property {string} [group]
 * @property {string} [kind]
 * @property {string} [uid]
 * @property {number} [retryAfterSeconds] after how many seconds to try again
 */

/**
 * Options of a denial.
 *
 * @typedef {object} DenyOnlyOptions
 * @property {number} [code] an HTTP status, 400 to 599; outside of that the gateway sends 400, as kube-apiserver does.
 *   Default: 403
 * @property {string} [reason] a metav1.StatusReason. Default: the one that Kubernetes pairs with `code`, if any
 * @property {Iterable<Cause>} [causes] one for each thing that is wrong, for machines
 * @property {Details} [details] which resource it is about, and when to try again
 */

/** @typedef {AnswerOptions & DenyOnlyOptions} DenyOptions */

const COMMON = ['warnings', 'auditAnnotations', 'cache'];
const OF_DENY = [...COMMON, 'code', 'reason', 'causes', 'details'];

/** The common part of allow and deny. */
class Verdict {
  /**
   * @param {Record<string, unknown>} given
   * @param {string} what
   */
  constructor(given, what) {
    this.warnings = listOf(given.warnings ?? [], `${what}'s warnings`, text);
    this.auditAnnotations = checkedAnnotations(given.auditAnnotations ?? {});
    this.cache = checkedCache(given.cache);
  }
}

/** The request may pass, perhaps changed. Made by `allow`, `patch`, `merge` and `mutated`. */
export class Allow extends Verdict {
  /**
   * @param {import('./changes.js').Change | undefined} change
   * @param {Record<string, unknown>} given
   * @param {string} what
   */
  constructor(change, given, what) {
    super(given, what);
    this.change = change;
    Object.freeze(this);
  }
}

/** The request must not pass. Made by `deny`. */
export class Deny extends Verdict {
  /**
   * @param {unknown} message
   * @param {Record<string, unknown>} given
   */
  constructor(message, given) {
    super(given, 'deny');
    this.message = text(message, "deny's message");
    this.code = int32(given.code ?? 403, "deny's code");
    this.reason = text(given.reason ?? REASONS.get(this.code) ?? '', "deny's reason");
    this.causes = listOf(given.causes ?? [], "deny's causes", checkedCause);
    this.details = checkedDetails(given.details ?? {});
    Object.freeze(this);
  }
}

/** The policy could not judge. Made by `fail`. */
export class Failure {
  /** @param {unknown} message */
  constructor(message) {
    this.message = text(message, "fail's message");
    Object.freeze(this);
  }
}

/** @typedef {Allow | Deny | Failure} Answer what a policy function returns; nothing (undefined or null) is `allow()` */

/**
 * Let the request pass as it is.
 *
 * @param {AnswerOptions} [given]
 * @returns {Allow}
 * @throws {InvalidAnswerError} one of these is of another type, or an audit key has other characters
 */
export function allow(given = {}) {
  return new Allow(undefined, options(given, COMMON, 'allow'), 'allow');
}

/**
 * Let the request pass changed by a JSON Patch (RFC 6902). Mutating policies only.
 *
 * @param {Iterable<import('./changes.js').Operation>} operations such as
 *   `{ op: 'add', path: '/metadata/labels/team', value: 'a' }`, paths over the object; no operation leaves the object
 *   as it is. `pointer(...)` makes paths and escapes keys
 * @param {AnswerOptions} [given]
 * @returns {Allow}
 * @throws {InvalidAnswerError} an operation that RFC 6902 does not know or that lacks a member, or a value that is
 *   not JSON
 */
export function patch(operations, given = {}) {
  return new Allow(jsonPatch(operations), options(given, COMMON, 'patch'), 'patch');
}

/**
 * Let the request pass changed by a JSON Merge Patch (RFC 7386), where null removes. Mutating policies only.
 *
 * @param {Record<string, unknown>} changes such as `{ metadata: { labels: { team: 'a' } } }`; arrays are replaced whole
 * @param {AnswerOptions} [given]
 * @returns {Allow}
 * @throws {InvalidAnswerError} not a JSON object
 */
export function merge(changes, given = {}) {
  return new Allow(mergePatch(changes), options(given, COMMON, 'merge'), 'merge');
}

/**
 * Let the request pass with this object; the gateway compares it with the one that it sent. Mutating policies only.
 *
 * @param {object} whole the complete changed object; `request.object` may be changed and returned. Numbers that the
 *   policy does not change keep their text
 * @param {AnswerOptions} [given]
 * @returns {Allow}
 * @throws {InvalidAnswerError} not a JSON object
 */
export function mutated(whole, given = {}) {
  return new Allow(wholeObject(whole), options(given, COMMON, 'mutated'), 'mutated');
}

/**
 * Deny the request.
 *
 * @param {string} message for the denied user: what is wrong and what to do
 * @param {DenyOptions} [given]
 * @returns {Deny}
 * @throws {InvalidAnswerError} one of these is of another type
 */
export function deny(message, given = {}) {
  return new Deny(message, options(given, OF_DENY, 'deny'));
}

/**
 * Report that the policy could not judge; the operator's failurePolicy decides.
 *
 * @param {string} message for the operator: the cause, in one sentence. Under failurePolicy Fail the user sees it too
 * @returns {Failure}
 * @throws {InvalidAnswerError} the message is no text
 */
export function fail(message) {
  return new Failure(message);
}

/**
 * @param {unknown} given
 * @returns {Readonly<Record<string, string>>}
 */
function checkedAnnotations(given) {
  const annotations = object(given, 'auditAnnotations');
  for (const [key, value] of Object.entries(annotations)) {
    if (!AUDIT_KEY.test(key)) {
      const shown = JSON.stringify(key);
      throw new InvalidAnswerError(`auditAnnotations: the key ${shown} must be 1 to 63 letters, digits, '-', '_', '.'`);
    }
    text(value, `auditAnnotations[${JSON.stringify(key)}]`);
  }
  return Object.freeze(/** @type {Record<string, string>} */ ({ ...annotations }));
}

/**
 * @param {unknown} cache
 * @returns {number | typeof NO_STORE | undefined}
 */
function checkedCache(cache) {
  if (cache === undefined || cache === NO_STORE) return /** @type {typeof NO_STORE | undefined} */ (cache);
  if (typeof cache !== 'number') {
    throw new InvalidAnswerError(`cache: must be a number of seconds or NO_STORE, is ${typeOf(cache)}`);
  }
  if (!(cache >= 0 && cache <= LONGEST_CACHE)) {
    throw new InvalidAnswerError(`cache: must be from 0 to ${LONGEST_CACHE} seconds; NO_STORE is never`);
  }
  return cache;
}

/**
 * @param {unknown} given
 * @param {string} what
 * @returns {Readonly<Required<Cause>>}
 */
function checkedCause(given, what) {
  if (!isObject(given))
    throw new InvalidAnswerError(`${what}: must be { field, message, reason }, is ${typeOf(given)}`);
  const known = options(given, ['field', 'message', 'reason'], what);
  return Object.freeze({
    field: text(known.field, `${what}'s field`),
    message: text(known.message, `${what}'s message`),
    reason: text(known.reason ?? 'FieldValueInvalid', `${what}'s reason`),
  });
}

/**
 * @param {unknown} given
 * @returns {Readonly<Required<Details>>}
 */
function checkedDetails(given) {
  const known = options(given, ['name', 'group', 'kind', 'uid', 'retryAfterSeconds'], "deny's details");
  return Object.freeze({
    name: text(known.name ?? '', "details' name"),
    group: text(known.group ?? '', "details' group"),
    kind: text(known.kind ?? '', "details' kind"),
    uid: text(known.uid ?? '', "details' uid"),
    retryAfterSeconds: int32(known.retryAfterSeconds ?? 0, "details' retryAfterSeconds"),
  });
}
