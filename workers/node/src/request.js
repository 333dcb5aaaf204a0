/**
 * A policy's document: the granted and claimed parts of a Kubernetes AdmissionRequest, typed and read lazily.
 *
 * Any member can be missing; then it is undefined, like a member that is null. (Kubernetes omits `name`, `namespace`
 * and `subResource` if they are empty, and sends `null` for a missing `object`, as on DELETE.) The values belong to the
 * policy, which may change and return them.
 */

import { isUtf8 } from 'node:buffer';
import { InvalidDocumentError } from './errors.js';
import { remember } from './fidelity.js';
import { isObject, typeOf } from './values.js';

/** @typedef {{ group: string, version: string, kind: string }} GroupVersionKind which kind of object; the core group is `''` */
/** @typedef {{ group: string, version: string, resource: string }} GroupVersionResource which resource is requested */

/**
 * An authentication.k8s.io/v1 UserInfo: the user who makes the request. A field that is empty, or was not granted, is
 * undefined.
 *
 * @typedef {object} UserInfo
 * @property {string} [username]
 * @property {string} [uid]
 * @property {string[]} [groups]
 * @property {Record<string, string[]>} [extra]
 */

/** @typedef {'CREATE' | 'UPDATE' | 'DELETE' | 'CONNECT'} Operation */

/**
 * A document's text: checked once, and parsed for each policy that shares it, since a policy may change its values.
 */
export class Document {
  /** @type {Record<string, unknown> | undefined} */
  #first;

  /**
   * @param {Buffer} raw a JSON object in UTF-8
   * @throws {InvalidDocumentError} it is not one JSON object
   */
  constructor(raw) {
    if (!isUtf8(raw)) throw new InvalidDocumentError('the document is not one JSON object: it is no UTF-8');
    this.raw = raw;
    this.text = raw.toString();
    this.#first = this.#parsed();
  }

  /**
   * The members, parsed for one policy.
   *
   * @returns {Record<string, unknown>}
   */
  take() {
    const members = this.#first ?? this.#parsed();
    this.#first = undefined;
    return members;
  }

  /** @returns {Record<string, unknown>} */
  #parsed() {
    let value;
    try {
      value = JSON.parse(this.text);
    } catch (error) {
      throw new InvalidDocumentError(`the document is not one JSON object: ${positionOf(error, this.text)}`);
    }
    if (!isObject(value)) {
      throw new InvalidDocumentError(`the document is not one JSON object: it is ${typeOf(value)}`);
    }
    return value;
  }
}

/**
 * The request that a policy judges.
 *
 * @template [T=any] the type of `object` and `oldObject`, such as `V1Pod` of a package with Kubernetes' types
 */
export class Request {
  /** @type {Document} */
  #document;
  /** @type {import('./cancellation.js').Cancellation} */
  #cancellation;
  /** @type {Record<string, any> | undefined} */
  #members;

  /**
   * @param {Document} document
   * @param {string} uid
   * @param {import('./cancellation.js').Cancellation} cancellation
   */
  constructor(document, uid, cancellation) {
    this.#document = document;
    this.#cancellation = cancellation;
    /** The AdmissionRequest's uid, for logs. A verdict must not depend on it: it differs in each request. */
    this.uid = uid;
  }

  /**
   * Aborted when the gateway no longer waits for the answer. Pass it to every operation that the policy awaits.
   *
   * @returns {AbortSignal}
   */
  get signal() {
    return this.#cancellation.signal;
  }

  /** The document's JSON text as it was sent, in UTF-8. */
  get raw() {
    return this.#document.raw;
  }

  /** The whole document, in the AdmissionRequest's own shape; unknown members included. @returns {Record<string, any>} */
  get document() {
    if (this.#members === undefined) {
      this.#members = this.#document.take();
      remember(this.#members, this.#document.text);
    }
    return this.#members;
  }

  /** The kind of `object`: for a subresource its own, such as Scale or Eviction. @returns {GroupVersionKind | undefined} */
  get kind() {
    return this.#names('kind', ['group', 'version', 'kind']);
  }

  /** The requested resource, in the version that the policy matched. @returns {GroupVersionResource | undefined} */
  get resource() {
    return this.#names('resource', ['group', 'version', 'resource']);
  }

  /** The subresource, such as `status` or `ephemeralcontainers`; undefined for the resource itself. */
  get subResource() {
    return this.#text('subResource');
  }

  /**
   * The kind of the original API request (differs from `kind` under matchPolicy Equivalent).
   *
   * @returns {GroupVersionKind | undefined}
   */
  get requestKind() {
    return this.#names('requestKind', ['group', 'version', 'kind']);
  }

  /** The resource of the original API request. @returns {GroupVersionResource | undefined} */
  get requestResource() {
    return this.#names('requestResource', ['group', 'version', 'resource']);
  }

  /** The subresource of the original API request. */
  get requestSubResource() {
    return this.#text('requestSubResource');
  }

  /** @returns {Operation | undefined} */
  get operation() {
    return /** @type {Operation | undefined} */ (this.#text('operation'));
  }

  /** The object's name. Undefined where the API server generates it (generateName), and on a deletecollection. */
  get name() {
    return this.#text('name');
  }

  /** The namespace; undefined for cluster-scoped objects, a Namespace's own name for Namespaces. */
  get namespace() {
    return this.#text('namespace');
  }

  /** The user who makes the request. @returns {UserInfo | undefined} */
  get userInfo() {
    return this.#object('userInfo');
  }

  /** Whether the request is a dry run, which stores nothing. @returns {boolean | undefined} */
  get dryRun() {
    return this.#member('dryRun', 'a boolean', value => typeof value === 'boolean');
  }

  /** The object as it would be stored; undefined on DELETE. @returns {T | undefined} */
  get object() {
    return this.#object('object');
  }

  /** The object as it is stored; undefined on CREATE and CONNECT. @returns {T | undefined} */
  get oldObject() {
    return this.#object('oldObject');
  }

  /** The operation's options, such as a CreateOptions; undefined on CONNECT. @returns {Record<string, any> | undefined} */
  get options() {
    return this.#object('options');
  }

  /** The object's Namespace, for a policy that claims it. @returns {Record<string, any> | undefined} */
  get namespaceObject() {
    return this.#object('namespaceObject');
  }

  /** The size and uid; never the content, which may be a Secret. */
  toString() {
    return `Request of ${this.raw.length} bytes, uid ${JSON.stringify(this.uid)}`;
  }

  /** As toString, so that a logged request shows no Secret. */
  [Symbol.for('nodejs.util.inspect.custom')]() {
    return `<${this.toString()}>`;
  }

  /**
   * @param {string} name
   * @param {string} expected
   * @param {(value: unknown) => boolean} check
   * @returns {any}
   */
  #member(name, expected, check) {
    const members = this.document;
    if (!Object.hasOwn(members, name)) return undefined;
    const value = members[name] ?? undefined;
    if (value !== undefined && !check(value)) {
      throw new InvalidDocumentError(`the document's ${name} cannot be read: must be ${expected}, is ${typeOf(value)}`);
    }
    return value;
  }

  /**
   * @param {string} name
   * @returns {string | undefined}
   */
  #text(name) {
    return this.#member(name, 'text', value => typeof value === 'string');
  }

  /** @param {string} name */
  #object(name) {
    return this.#member(name, 'an object', isObject);
  }

  /**
   * @param {string} name
   * @param {readonly string[]} fields names of texts; a missing one is `''`
   * @returns {any}
   */
  #names(name, fields) {
    const found = this.#object(name);
    if (found === undefined) return undefined;
    return Object.fromEntries(
      fields.map(field => {
        const value = (Object.hasOwn(found, field) ? found[field] : undefined) ?? '';
        if (typeof value === 'string') return [field, value];
        throw new InvalidDocumentError(
          `the document's ${name}.${field} cannot be read: must be text, is ${typeOf(value)}`,
        );
      }),
    );
  }
}

/**
 * Where a text is not JSON. V8's message quotes the text, which may be a Secret, so only its position is used.
 *
 * @param {unknown} error thrown by `JSON.parse`
 * @param {string} text
 * @returns {string}
 */
export function positionOf(error, text) {
  const found = /at position (\d+)/.exec(error instanceof Error ? error.message : '');
  return found ? `it is no JSON at character ${found[1]}` : `it is no JSON; it has ${text.length} characters`;
}
