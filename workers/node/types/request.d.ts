/**
 * Where a text stops being JSON. V8's message quotes the text, which may be a Secret, so only the position is taken.
 *
 * @param {unknown} error what `JSON.parse` threw
 * @param {string} text
 * @returns {string}
 */
export function positionOf(error: unknown, text: string): string;
/** @typedef {{ group: string, version: string, kind: string }} GroupVersionKind which kind of object; the core group is `''` */
/** @typedef {{ group: string, version: string, resource: string }} GroupVersionResource which resource is asked for */
/**
 * An authentication.k8s.io/v1 UserInfo: who calls. A field that is empty, or was not granted, is undefined.
 *
 * @typedef {object} UserInfo
 * @property {string} [username]
 * @property {string} [uid]
 * @property {string[]} [groups]
 * @property {Record<string, string[]>} [extra]
 */
/** @typedef {'CREATE' | 'UPDATE' | 'DELETE' | 'CONNECT'} Operation */
/**
 * A document's text, checked once and read afresh by each policy that it is for, since what a policy reads is its own.
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
     * The members, for one policy alone.
     *
     * @returns {Record<string, unknown>}
     */
    take(): Record<string, unknown>;
    #private;
}
/**
 * One document, as a policy sees it.
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
    /** The AdmissionRequest's uid, for logs. A verdict must not depend on it: it differs in each call. */
    uid: string;
    /**
     * Aborted when nobody waits for the answer any more: give it to whatever the policy waits for.
     *
     * @returns {AbortSignal}
     */
    get signal(): AbortSignal;
    /** The document's JSON text, as it was sent: UTF-8. */
    get raw(): Buffer<ArrayBufferLike>;
    /** The whole document, in the AdmissionRequest's own shape; unknown members included. @returns {Record<string, any>} */
    get document(): Record<string, any>;
    /** The kind of `object`: for a subresource its own, such as Scale or Eviction. @returns {GroupVersionKind | undefined} */
    get kind(): GroupVersionKind | undefined;
    /** The resource that is asked for, in the version that the policy matched. @returns {GroupVersionResource | undefined} */
    get resource(): GroupVersionResource | undefined;
    /** The subresource, such as `status` or `ephemeralcontainers`; undefined: the resource itself. */
    get subResource(): string | undefined;
    /**
     * The kind in the version in which the client called (differs from `kind` under matchPolicy Equivalent).
     *
     * @returns {GroupVersionKind | undefined}
     */
    get requestKind(): GroupVersionKind | undefined;
    /** The resource in the version in which the client called. @returns {GroupVersionResource | undefined} */
    get requestResource(): GroupVersionResource | undefined;
    /** The subresource as the client called. */
    get requestSubResource(): string | undefined;
    /** @returns {Operation | undefined} */
    get operation(): Operation | undefined;
    /** The object's name. Undefined where the API server makes it (generateName), and on a deletecollection. */
    get name(): string | undefined;
    /** The namespace; undefined for cluster-scoped objects, a Namespace's own name for Namespaces. */
    get namespace(): string | undefined;
    /** Who calls. @returns {UserInfo | undefined} */
    get userInfo(): UserInfo | undefined;
    /** Whether nothing will be stored. @returns {boolean | undefined} */
    get dryRun(): boolean | undefined;
    /** The object as it would be stored; undefined on DELETE. @returns {T | undefined} */
    get object(): T | undefined;
    /** The object as it is stored; undefined on CREATE and CONNECT. @returns {T | undefined} */
    get oldObject(): T | undefined;
    /** The operation's options, such as a CreateOptions; undefined on CONNECT. @returns {Record<string, any> | undefined} */
    get options(): Record<string, any> | undefined;
    /** The Namespace in which the object is, for a policy that claims it. @returns {Record<string, any> | undefined} */
    get namespaceObject(): Record<string, any> | undefined;
    /** How large and for which log line; never the content, which may be a Secret. */
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
 * which resource is asked for
 */
export type GroupVersionResource = {
    group: string;
    version: string;
    resource: string;
};
/**
 * An authentication.k8s.io/v1 UserInfo: who calls. A field that is empty, or was not granted, is undefined.
 */
export type UserInfo = {
    username?: string | undefined;
    uid?: string | undefined;
    groups?: string[] | undefined;
    extra?: Record<string, string[]> | undefined;
};
export type Operation = "CREATE" | "UPDATE" | "DELETE" | "CONNECT";
