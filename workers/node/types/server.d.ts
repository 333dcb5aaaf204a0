/** A worker that is being served. */
export class Served {
    /**
     * @param {import('./worker.js').ServedWorker} worker
     * @param {ServeOptions} options
     */
    constructor(worker: import("./worker.js").ServedWorker, { limits, log }: ServeOptions);
    /** The target for a gRPC client; port 0 is replaced by the port that the system chose. */
    address: string;
    /** The names of the served policies. */
    policies: readonly string[];
    /**
     * @param {string} address
     * @param {import('./certificates.js').TlsFiles | undefined} files
     */
    start(address: string, files: import("./certificates.js").TlsFiles | undefined): Promise<void>;
    /**
     * Stop gracefully. Resolved when the worker has stopped; a second call waits for the same stop.
     *
     * @returns {Promise<void>}
     */
    close(): Promise<void>;
    #private;
}
/**
 * Options of `Worker.serve`.
 */
export type ServeOptions = {
    limits?: Partial<import("./limits.js").Limits> | undefined;
    /**
     * default: without TLS
     */
    tls?: import("./certificates.js").TlsFiles | undefined;
    /**
     * default: level `info`, on standard error
     */
    log?: Log | undefined;
    /**
     * whether to serve the probe policies too (`probes.js`); default false
     */
    conformance?: boolean | undefined;
};
export type Bytes = (bytes: Buffer) => Buffer;
import { Log } from './logs.js';
