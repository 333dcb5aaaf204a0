/**
 * Milliseconds without a message after which a stopping worker takes it that its gateway sends no more: some round
 * trips of a slow network, since the gateway has been told by then (health, over the same connection).
 */
export const QUIET: 500;
/**
 * An open call. It holds one place in flight until its work has ended.
 *
 * @typedef {object} Opened
 * @property {number | string} key
 * @property {Uint64} id
 * @property {PolicyCall} call
 * @property {Source | undefined} source
 * @property {number} deadline on `performance.now()`'s clock; Infinity: as long as the stream lives
 * @property {Cancellation} cancellation
 * @property {NodeJS.Timeout | undefined} timer
 * @property {boolean} isRunning
 */
/** Serves one stream. */
export class Conversation {
    /**
     * @param {import('@grpc/grpc-js').ServerDuplexStream<Buffer, Buffer>} call
     * @param {object} served
     * @param {import('./judging.js').Judge} served.judge answers
     * @param {import('./limits.js').InFlight} served.inFlight places for calls, shared with all other calls
     * @param {Readonly<import('./limits.js').Limits>} served.limits
     * @param {import('./logs.js').Log} served.log
     */
    constructor(call: import("@grpc/grpc-js").ServerDuplexStream<Buffer, Buffer>, { judge, inFlight, limits, log }: {
        judge: import("./judging.js").Judge;
        inFlight: import("./limits.js").InFlight;
        limits: Readonly<import("./limits.js").Limits>;
        log: import("./logs.js").Log;
    });
    /** Answer until the gateway half-closes, the worker stops, or the stream breaks. @param {() => void} ended */
    start(ended: () => void): void;
    /** End as soon as nothing is open and nothing more comes. */
    stop(): void;
    #private;
}
export type PolicyCall = import("./messages.js").PolicyCall;
export type Uint64 = import("./messages.js").Uint64;
/**
 * An open call. It holds one place in flight until its work has ended.
 */
export type Opened = {
    key: number | string;
    id: Uint64;
    call: PolicyCall;
    source: Source | undefined;
    /**
     * on `performance.now()`'s clock; Infinity: as long as the stream lives
     */
    deadline: number;
    cancellation: Cancellation;
    timer: NodeJS.Timeout | undefined;
    isRunning: boolean;
};
import { Source } from './judging.js';
import { Cancellation } from './cancellation.js';
