/** Serves the four calls. */
export class Service {
    /**
     * @param {import('./worker.js').Held} worker
     * @param {Readonly<import('./limits.js').Limits>} limits
     * @param {import('./logs.js').Log} log
     * @param {() => void} changed called when a call has come or a stream has ended
     */
    constructor(worker: import("./worker.js").Held, limits: Readonly<import("./limits.js").Limits>, log: import("./logs.js").Log, changed: () => void);
    changed: () => void;
    /** When the latest call other than a stream came, on `performance.now()`'s clock. */
    lastCall: number;
    /** Whether a stream is open. */
    get hasStreams(): boolean;
    /** End each stream as soon as nothing of it is open and nothing more comes. */
    stop(): void;
    /**
     * The policies, their versions and claims.
     *
     * @param {UnaryCall} call
     * @param {Answer} answer
     */
    describe(call: UnaryCall, answer: Answer): void;
    /**
     * Whether a policy can work with these settings.
     *
     * @param {UnaryCall} call
     * @param {Answer} answer
     */
    validateSettings(call: UnaryCall, answer: Answer): void;
    /**
     * Exactly one call. gRPC says `cancelled` when the deadline is over or nobody waits any more.
     *
     * @param {UnaryCall} call
     * @param {Answer} answer
     */
    review(call: UnaryCall, answer: Answer): void;
    /**
     * Many calls.
     *
     * @param {import('@grpc/grpc-js').ServerDuplexStream<Buffer, Buffer>} call
     */
    reviewStream(call: import("@grpc/grpc-js").ServerDuplexStream<Buffer, Buffer>): void;
    #private;
}
export type UnaryCall = import("@grpc/grpc-js").ServerUnaryCall<Buffer, Buffer>;
export type Answer = import("@grpc/grpc-js").sendUnaryData<Buffer>;
