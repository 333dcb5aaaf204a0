/** A worker that is being served. */
export class Served {
    /**
     * @param {import('./worker.js').Held} worker
     * @param {ServeOptions} options
     */
    constructor(worker: import("./worker.js").Held, { limits, log }: ServeOptions);
    /** For a gRPC client: with the port that was found where 0 was asked for. */
    address: string;
    /** The names of all that is served. */
    policies: readonly string[];
    /**
     * @param {string} address
     * @param {import('./certificates.js').TlsFiles | undefined} files
     */
    start(address: string, files: import("./certificates.js").TlsFiles | undefined): Promise<void>;
    /**
     * Stop in order: resolved when everything has ended. A second call waits for the same end.
     *
     * @returns {Promise<void>}
     */
    close(): Promise<void>;
    #private;
}
/**
 * How to serve.
 */
export type ServeOptions = {
    limits?: Partial<import("./limits.js").Limits> | undefined;
    /**
     * default: without TLS
     */
    tls?: import("./certificates.js").TlsFiles | undefined;
    /**
     * default: everything from `info` on standard error
     */
    log?: Log | undefined;
    /**
     * whether the probe policies are served as well (`probes.js`); default false
     */
    conformance?: boolean | undefined;
};
export type Bytes = (bytes: Buffer) => Buffer;
import { Log } from './logs.js';
