/** Serves the four RPCs. */
export class Service {
    /**
     * @param {import('./worker.js').ServedWorker} worker
     * @param {Readonly<import('./limits.js').Limits>} limits
     * @param {import('./logs.js').Log} log
     * @param {() => void} changed called when a call has arrived or a stream has ended
     */
    constructor(worker: import("./worker.js").ServedWorker, limits: Readonly<import("./limits.js").Limits>, log: import("./logs.js").Log, changed: () => void);
    changed: () => void;
    /** When the latest unary call arrived, on `performance.now()`'s clock. */
    lastCall: number;
    /** Whether a stream is open. */
    get hasStreams(): boolean;
    /** End each stream when it has no open calls and receives no more. */
    stop(): void;
    /**
     * The policies, their versions and claims.
     *
     * @param {UnaryCall} call
     * @param {Answer} answer
     */
    describe(call: UnaryCall, answer: Answer): void;
    /**
     * Validate settings of a policy.
     *
     * @param {UnaryCall} call
     * @param {Answer} answer
     */
    validateSettings(call: UnaryCall, answer: Answer): void;
    /**
     * One call. gRPC emits `cancelled` after the deadline and when the client cancels.
     *
     * @param {UnaryCall} call
     * @param {Answer} answer
     */
    review(call: UnaryCall, answer: Answer): void;
    /**
     * A stream of calls.
     *
     * @param {import('@grpc/grpc-js').ServerDuplexStream<Buffer, Buffer>} call
     */
    reviewStream(call: import("@grpc/grpc-js").ServerDuplexStream<Buffer, Buffer>): void;
    #private;
}
export type UnaryCall = import("@grpc/grpc-js").ServerUnaryCall<Buffer, Buffer>;
export type Answer = import("@grpc/grpc-js").sendUnaryData<Buffer>;
