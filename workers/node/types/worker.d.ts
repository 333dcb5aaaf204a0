/**
 * The served part of a worker; the policies include the probes.
 *
 * @typedef {{ name: string, version: string, policies: ReadonlyMap<string, Policy> }} ServedWorker
 */
/** Holds policies and serves them. */
export class Worker {
    /**
     * @param {string} name for logs, such as `labels`. It may differ from the name in the gateway's configuration
     * @param {object} options
     * @param {string} options.version of the worker's build, such as `1.4.2` or a commit. It must change whenever a
     *   verdict may change: it is part of the cache key
     * @throws {RegistrationError} the name or the version is missing
     */
    constructor(name: string, options: {
        version: string;
    });
    name: string;
    version: string;
    /** The registered policies by name. @returns {ReadonlyMap<string, Policy>} */
    get policies(): ReadonlyMap<string, Policy>;
    /**
     * Register a validating policy: it allows or denies, and changes nothing.
     *
     * @template [S=any], [T=any]
     * @param {string} name a DNS-1123 label; the configuration's `policy` refers to it
     * @param {import('./policies.js').ValidatingOptions<S>} options its inputs, settings, ...
     * @param {import('./policies.js').PolicyFunction<S, T>} judge returns an answer to a request and settings, or a
     *   promise of one
     * @returns {this} for chaining
     * @throws {RegistrationError} an invalid or duplicate name, an invalid claim, an invalid schema, ...
     */
    validating<S = any, T = any>(name: string, options: import("./policies.js").ValidatingOptions<S>, judge: import("./policies.js").PolicyFunction<S, T>): this;
    /**
     * Register a mutating policy: it allows, perhaps with a change, or denies.
     *
     * @template [S=any], [T=any]
     * @param {string} name as for `validating`
     * @param {import('./policies.js').MutatingOptions<S>} options as for `validating`, and `writes`
     * @param {import('./policies.js').PolicyFunction<S, T>} judge as for `validating`
     * @returns {this} for chaining
     * @throws {RegistrationError} as for `validating`
     */
    mutating<S = any, T = any>(name: string, options: import("./policies.js").MutatingOptions<S>, judge: import("./policies.js").PolicyFunction<S, T>): this;
    /**
     * Serve inside a program or a test.
     *
     * @param {string} [address] `HOST:PORT`, `unix:PATH` or `unix:///ABSOLUTE`; port 0, the default, is any free port
     * @param {import('./server.js').ServeOptions} [options]
     * @returns {Promise<Served>} `address` is the target for a gRPC client; `close()` stops the worker gracefully
     * @throws {import('./errors.js').AddressError} the worker cannot listen on the address
     * @throws {import('./errors.js').CertificateError} a certificate cannot be used
     */
    serve(address?: string, options?: import("./server.js").ServeOptions): Promise<Served>;
    /**
     * Run the worker's command: serve until SIGTERM or SIGINT, then end the process.
     *
     * @param {readonly string[]} [args] default: the arguments of the process
     * @returns {Promise<never>}
     */
    main(args?: readonly string[]): Promise<never>;
    #private;
}
/**
 * The served part of a worker; the policies include the probes.
 */
export type ServedWorker = {
    name: string;
    version: string;
    policies: ReadonlyMap<string, Policy>;
};
import { Policy } from './policies.js';
import { Served } from './server.js';
