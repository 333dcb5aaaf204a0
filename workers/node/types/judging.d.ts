/** @typedef {import('./messages.js').PolicyCall} PolicyCall */
/** @typedef {import('./cancellation.js').Cancellation} Cancellation */
/** @typedef {import('./policies.js').Policy} Policy */
/** @typedef {{ policy: Policy, version: string, request: Request, document: Document, settings: any }} PreparedCall */
/** @typedef {import('./tracing.js').Judged} Judged */
/**
 * A received document: parsed when the first call needs it, once for all calls that share it.
 */
export class Source {
    /** @param {Buffer} raw */
    constructor(raw: Buffer);
    raw: Buffer<ArrayBufferLike>;
    /**
     * @returns {Document}
     * @throws {InvalidDocumentError} not a JSON object
     */
    read(): Document;
    #private;
}
/** Calls the policies of one served worker, and caches their settings. */
export class Judge {
    /**
     * @param {import('./worker.js').ServedWorker} worker
     * @param {Readonly<import('./limits.js').Limits>} limits of the settings cache and of an outcome's size
     * @param {import('./logs.js').Log} log
     */
    constructor(worker: import("./worker.js").ServedWorker, limits: Readonly<import("./limits.js").Limits>, log: import("./logs.js").Log);
    /**
     * Begin a call.
     *
     * @param {PolicyCall} call its document and timeout are left to the caller
     * @param {Source | undefined} source its document, if it has one
     * @param {Cancellation} cancellation
     * @returns {Buffer | Promise<Buffer>} the encoded Outcome. Never throws or rejects
     */
    begin(call: PolicyCall, source: Source | undefined, cancellation: Cancellation): Buffer | Promise<Buffer>;
    /**
     * The Outcome of a call without a verdict, with its policy's version.
     *
     * @param {PolicyCall} call
     * @param {string} message
     * @param {number} [reason]
     * @returns {Buffer}
     */
    failure(call: PolicyCall, message: string, reason?: number): Buffer;
    /**
     * The Outcome of a call that exceeded its timeout.
     *
     * @param {PolicyCall} call of the stream
     * @returns {Buffer}
     */
    timedOut(call: PolicyCall): Buffer;
    #private;
}
export type PolicyCall = import("./messages.js").PolicyCall;
export type Cancellation = import("./cancellation.js").Cancellation;
export type Policy = import("./policies.js").Policy;
export type PreparedCall = {
    policy: Policy;
    version: string;
    request: Request;
    document: Document;
    settings: any;
};
export type Judged = import("./tracing.js").Judged;
import { Document } from './request.js';
import { Request } from './request.js';
