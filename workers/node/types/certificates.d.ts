/** Reads the files, and watches them. */
export class Certificates {
    /**
     * @param {TlsFiles} files
     * @param {import('./logs.js').Log} log
     */
    constructor(files: TlsFiles, log: import("./logs.js").Log);
    /**
     * What a TLS server needs.
     *
     * @returns {Promise<tls.TlsOptions>}
     * @throws {CertificateError} they cannot be used
     */
    load(): Promise<tls.TlsOptions>;
    /**
     * Look for changes until `close`.
     *
     * @param {(options: tls.TlsOptions) => void} changed takes what can be used
     */
    watch(changed: (options: tls.TlsOptions) => void): void;
    /** Look no more. */
    close(): void;
    #private;
}
/**
 * Where they are.
 */
export type TlsFiles = {
    /**
     * the certificate, and those of the authorities between it and the root
     */
    cert: string;
    /**
     * its private key
     */
    key: string;
    /**
     * the authorities whose clients are served, and no others; default: any client
     */
    clientCa?: string | undefined;
};
import tls from 'node:tls';
