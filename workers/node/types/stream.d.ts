/**
 * Milliseconds without a message after which a stopping worker ends a stream: some round trips of a slow network, in
 * which the gateway has received NOT_SERVING over the same connection.
 */
export const QUIET: 500;
/**
 * An open call. It counts as in flight until its function has ended.
 *
 * @typedef {object} OpenCall
 * @property {number | string} key
 * @property {Uint64} id
 * @property {PolicyCall} call
 * @property {Source | undefined} source
 * @property {number} deadline on `performance.now()`'s clock; Infinity: the end of the stream
 * @property {Cancellation} cancellation
 * @property {NodeJS.Timeout | undefined} timer
 * @property {boolean} isRunning
 */
/** Serves one stream. */
export class ReviewStream {
    /**
     * @param {import('@grpc/grpc-js').ServerDuplexStream<Buffer, Buffer>} call
     * @param {object} served
     * @param {import('./judging.js').Judge} served.judge calls the policies
     * @param {import('./limits.js').InFlight} served.inFlight shared with all other calls
     * @param {Readonly<import('./limits.js').Limits>} served.limits
     * @param {import('./logs.js').Log} served.log
     */
    constructor(call: import("@grpc/grpc-js").ServerDuplexStream<Buffer, Buffer>, { judge, inFlight, limits, log }: {
        judge: import("./judging.js").Judge;
        inFlight: import("./limits.js").InFlight;
        limits: Readonly<import("./limits.js").Limits>;
        log: import("./logs.js").Log;
    });
    /** Serve until the gateway half-closes, the worker stops, or the stream breaks. @param {() => void} ended */
    start(ended: () => void): void;
    /** End when no call is open and no more arrive. */
    stop(): void;
    #private;
}
export type PolicyCall = import("./messages.js").PolicyCall;
export type Uint64 = import("./messages.js").Uint64;
/**
 * An open call. It counts as in flight until its function has ended.
 */
export type OpenCall = {
    key: number | string;
    id: Uint64;
    call: PolicyCall;
    source: Source | undefined;
    /**
     * on `performance.now()`'s clock; Infinity: the end of the stream
     */
    deadline: number;
    cancellation: Cancellation;
    timer: NodeJS.Timeout | undefined;
    isRunning: boolean;
};
import { Source } from './judging.js';
import { Cancellation } from './cancellation.js';
