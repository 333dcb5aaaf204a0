/** Reads the files, and watches them. */
export class Certificates {
    /**
     * @param {TlsFiles} files
     * @param {import('./logs.js').Log} log
     */
    constructor(files: TlsFiles, log: import("./logs.js").Log);
    /**
     * The options of a TLS server.
     *
     * @returns {Promise<tls.TlsOptions>}
     * @throws {CertificateError} they cannot be used
     */
    load(): Promise<tls.TlsOptions>;
    /**
     * Poll the files until `close`.
     *
     * @param {(options: tls.TlsOptions) => void} changed called with each new valid certificate
     */
    watch(changed: (options: tls.TlsOptions) => void): void;
    /** Stop polling. */
    close(): void;
    #private;
}
/**
 * The paths of the PEM files.
 */
export type TlsFiles = {
    /**
     * the certificate, followed by its intermediate authorities
     */
    cert: string;
    /**
     * its private key
     */
    key: string;
    /**
     * the authorities of client certificates; only their clients are served. Default: all
     * clients are served
     */
    clientCa?: string | undefined;
};
import tls from 'node:tls';
