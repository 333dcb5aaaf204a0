/** Answers Check and Watch. */
export class Health {
    /** Say NOT_SERVING from now on, to those who watch as well. */
    stop(): void;
    /**
     * The state now. "If the service name is not registered, the server returns a NOT_FOUND GRPC status."
     *
     * @param {import('@grpc/grpc-js').ServerUnaryCall<Buffer, Buffer>} call
     * @param {import('@grpc/grpc-js').sendUnaryData<Buffer>} answer
     */
    check(call: import("@grpc/grpc-js").ServerUnaryCall<Buffer, Buffer>, answer: import("@grpc/grpc-js").sendUnaryData<Buffer>): void;
    /**
     * The state now, and whenever it changes: once.
     *
     * @param {import('@grpc/grpc-js').ServerWritableStream<Buffer, Buffer>} call
     */
    watch(call: import("@grpc/grpc-js").ServerWritableStream<Buffer, Buffer>): void;
    #private;
}
