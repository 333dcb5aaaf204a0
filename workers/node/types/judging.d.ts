/** @typedef {import('./messages.js').PolicyCall} PolicyCall */
/** @typedef {import('./cancellation.js').Cancellation} Cancellation */
/** @typedef {import('./policies.js').Policy} Policy */
/** @typedef {{ policy: Policy, version: string, request: Request, document: Document, settings: any }} Question */
/** @typedef {import('./tracing.js').Judged} Judged */
/**
 * A document as it arrived: read when the first call needs it, and once for all that share it.
 */
export class Source {
    /** @param {Buffer} raw */
    constructor(raw: Buffer);
    raw: Buffer<ArrayBufferLike>;
    /**
     * @returns {Document}
     * @throws {InvalidDocumentError} it is not one JSON object
     */
    read(): Document;
    #private;
}
/** Holds the policies and all that is kept between calls. One for each served worker. */
export class Judge {
    /**
     * @param {import('./worker.js').Held} worker
     * @param {Readonly<import('./limits.js').Limits>} limits of settings kept and of the size of an outcome
     * @param {import('./logs.js').Log} log
     */
    constructor(worker: import("./worker.js").Held, limits: Readonly<import("./limits.js").Limits>, log: import("./logs.js").Log);
    /**
     * Take a call.
     *
     * @param {PolicyCall} call the question. Its document, timeout and trace context are the caller's affair
     * @param {Source | undefined} source its document; undefined: it has none
     * @param {{ traceparent: string, cancellation: Cancellation }} call
     * @returns {Buffer | Promise<Buffer>} the encoded Outcome. Neither throws
     */
    begin(call: PolicyCall, source: Source | undefined, { traceparent, cancellation }: {
        traceparent: string;
        cancellation: Cancellation;
    }): Buffer | Promise<Buffer>;
    /**
     * An Outcome that says why a call has no verdict, in its policy's version.
     *
     * @param {PolicyCall} call
     * @param {string} message
     * @param {number} [reason]
     * @returns {Buffer}
     */
    failure(call: PolicyCall, message: string, reason?: number): Buffer;
    /**
     * The Outcome of a call whose time is over.
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
export type Question = {
    policy: Policy;
    version: string;
    request: Request;
    document: Document;
    settings: any;
};
export type Judged = import("./tracing.js").Judged;
import { Document } from './request.js';
import { Request } from './request.js';
