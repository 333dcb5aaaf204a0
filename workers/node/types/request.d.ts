/**
 * Where a text is not JSON. V8's message quotes the text, which may be a Secret, so only its position is used.
 *
 * @param {unknown} error thrown by `JSON.parse`
 * @param {string} text
 * @returns {string}
 */
export function positionOf(error: unknown, text: string): string;
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
    /**
     * @param {Buffer} raw a JSON object in UTF-8
     * @throws {InvalidDocumentError} it is not one JSON object
     */
    constructor(raw: Buffer);
    raw: Buffer<ArrayBufferLike>;
    text: string;
    /**
     * The members, parsed for one policy.
     *
     * @returns {Record<string, unknown>}
     */
    take(): Record<string, unknown>;
    #private;
}
/**
 * The request that a policy judges.
 *
 * @template [T=any] the type of `object` and `oldObject`, such as `V1Pod` of a package with Kubernetes' types
 */
export class Request<T = any> {
    /**
     * @param {Document} document
     * @param {string} uid
     * @param {import('./cancellation.js').Cancellation} cancellation
     */
    constructor(document: Document, uid: string, cancellation: import("./cancellation.js").Cancellation);
    /** The AdmissionRequest's uid, for logs. A verdict must not depend on it: it differs in each request. */
    uid: string;
    /**
     * Aborted when the gateway no longer waits for the answer. Pass it to every operation that the policy awaits.
     *
     * @returns {AbortSignal}
     */
    get signal(): AbortSignal;
    /** The document's JSON text as it was sent, in UTF-8. */
    get raw(): Buffer<ArrayBufferLike>;
    /** The whole document, in the AdmissionRequest's own shape; unknown members included. @returns {Record<string, any>} */
    get document(): Record<string, any>;
    /** The kind of `object`: for a subresource its own, such as Scale or Eviction. @returns {GroupVersionKind | undefined} */
    get kind(): GroupVersionKind | undefined;
    /** The requested resource, in the version that the policy matched. @returns {GroupVersionResource | undefined} */
    get resource(): GroupVersionResource | undefined;
    /** The subresource, such as `status` or `ephemeralcontainers`; undefined for the resource itself. */
    get subResource(): string | undefined;
    /**
     * The kind of the original API request (differs from `kind` under matchPolicy Equivalent).
     *
     * @returns {GroupVersionKind | undefined}
     */
    get requestKind(): GroupVersionKind | undefined;
    /** The resource of the original API request. @returns {GroupVersionResource | undefined} */
    get requestResource(): GroupVersionResource | undefined;
    /** The subresource of the original API request. */
    get requestSubResource(): string | undefined;
    /** @returns {Operation | undefined} */
    get operation(): Operation | undefined;
    /** The object's name. Undefined where the API server generates it (generateName), and on a deletecollection. */
    get name(): string | undefined;
    /** The namespace; undefined for cluster-scoped objects, a Namespace's own name for Namespaces. */
    get namespace(): string | undefined;
    /** The user who makes the request. @returns {UserInfo | undefined} */
    get userInfo(): UserInfo | undefined;
    /** Whether the request is a dry run, which stores nothing. @returns {boolean | undefined} */
    get dryRun(): boolean | undefined;
    /** The object as it would be stored; undefined on DELETE. @returns {T | undefined} */
    get object(): T | undefined;
    /** The object as it is stored; undefined on CREATE and CONNECT. @returns {T | undefined} */
    get oldObject(): T | undefined;
    /** The operation's options, such as a CreateOptions; undefined on CONNECT. @returns {Record<string, any> | undefined} */
    get options(): Record<string, any> | undefined;
    /** The object's Namespace, for a policy that claims it. @returns {Record<string, any> | undefined} */
    get namespaceObject(): Record<string, any> | undefined;
    /** The size and uid; never the content, which may be a Secret. */
    toString(): string;
    #private;
}
/**
 * which kind of object; the core group is `''`
 */
export type GroupVersionKind = {
    group: string;
    version: string;
    kind: string;
};
/**
 * which resource is requested
 */
export type GroupVersionResource = {
    group: string;
    version: string;
    resource: string;
};
/**
 * An authentication.k8s.io/v1 UserInfo: the user who makes the request. A field that is empty, or was not granted, is
 * undefined.
 */
export type UserInfo = {
    username?: string | undefined;
    uid?: string | undefined;
    groups?: string[] | undefined;
    extra?: Record<string, string[]> | undefined;
};
export type Operation = "CREATE" | "UPDATE" | "DELETE" | "CONNECT";
