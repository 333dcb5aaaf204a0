/** Serves Check and Watch. */
export class Health {
    /** Report NOT_SERVING from now on, and to all watches. */
    stop(): void;
    /**
     * The current status. "If the service name is not registered, the server returns a NOT_FOUND GRPC status."
     *
     * @param {import('@grpc/grpc-js').ServerUnaryCall<Buffer, Buffer>} call
     * @param {import('@grpc/grpc-js').sendUnaryData<Buffer>} answer
     */
    check(call: import("@grpc/grpc-js").ServerUnaryCall<Buffer, Buffer>, answer: import("@grpc/grpc-js").sendUnaryData<Buffer>): void;
    /**
     * The current status, and its only change, to NOT_SERVING.
     *
     * @param {import('@grpc/grpc-js').ServerWritableStream<Buffer, Buffer>} call
     */
    watch(call: import("@grpc/grpc-js").ServerWritableStream<Buffer, Buffer>): void;
    #private;
}
