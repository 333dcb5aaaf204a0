/**
 * Write a Kubernetes admission policy as a JavaScript or TypeScript function; serve it to the admission gateway over
 * gRPC.
 *
 * This module and `admission-worker/testing` are the public API. README.md is the guide.
 */

export { Allow, allow, Deny, deny, Failure, fail, merge, mutated, NO_STORE, patch } from './answers.js';
export { Change } from './changes.js';
export { EVERYTHING } from './claims.js';
export { jsonOf } from './encoding.js';
export {
  AddressError,
  CertificateError,
  InvalidAnswerError,
  InvalidDocumentError,
  InvalidSettingsError,
  RegistrationError,
  SettingsError,
  SettingsWarning,
} from './errors.js';
export { entries } from './fidelity.js';
export { Log } from './logs.js';
export { pointer } from './pointers.js';
export { Request } from './request.js';
export { Worker } from './worker.js';

/** @typedef {import('./answers.js').Answer} Answer */
/** @typedef {import('./answers.js').AnswerOptions} AnswerOptions */
/** @typedef {import('./answers.js').Cause} Cause */
/** @typedef {import('./answers.js').DenyOptions} DenyOptions */
/** @typedef {import('./answers.js').Details} Details */
/** @typedef {import('./certificates.js').TlsFiles} TlsFiles */
/** @typedef {import('./changes.js').Operation} Operation */
/** @typedef {import('./limits.js').Limits} Limits */
/**
 * @template [S=any]
 * @typedef {import('./policies.js').MutatingOptions<S>} MutatingOptions
 */
/**
 * @template [S=any], [T=any]
 * @typedef {import('./policies.js').PolicyFunction<S, T>} PolicyFunction
 */
/**
 * @template [S=any]
 * @typedef {import('./policies.js').ValidatingOptions<S>} ValidatingOptions
 */
/** @typedef {import('./request.js').GroupVersionKind} GroupVersionKind */
/** @typedef {import('./request.js').GroupVersionResource} GroupVersionResource */
/** @typedef {import('./request.js').UserInfo} UserInfo */
/** @typedef {import('./server.js').Served} Served */
/** @typedef {import('./server.js').ServeOptions} ServeOptions */
/** @typedef {import('./settings.js').Finding} Finding */
/** @typedef {import('./settings.js').Schema} Schema */
