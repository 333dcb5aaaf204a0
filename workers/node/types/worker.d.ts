/**
 * What is served of a worker.
 *
 * @typedef {{ name: string, version: string, policies: ReadonlyMap<string, Policy> }} Held
 */
/** Holds policies and serves them. */
export class Worker {
    /**
     * @param {string} name for logs, such as `labels`. It need not be the name that the gateway's configuration gives it
     * @param {object} options
     * @param {string} options.version of the worker's build, such as `1.4.2` or a commit. It must change whenever a
     *   verdict may change: it is part of the key under which verdicts are cached
     * @throws {RegistrationError} one of them is missing
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
     * @param {string} name a DNS-1123 label, as the configuration's `policy` names it
     * @param {import('./policies.js').ValidatingOptions<S>} options what it reads, its settings, ...
     * @param {import('./policies.js').PolicyFunction<S, T>} judge the policy: a request and its settings in, an answer
     *   out, at once or in time
     * @returns {this} to register another one
     * @throws {RegistrationError} a name that is no DNS-1123 label or is taken, a claim that is no place in a request, a
     *   schema that is none, ...
     */
    validating<S = any, T = any>(name: string, options: import("./policies.js").ValidatingOptions<S>, judge: import("./policies.js").PolicyFunction<S, T>): this;
    /**
     * Register a mutating policy: it allows, perhaps with a change, or denies.
     *
     * @template [S=any], [T=any]
     * @param {string} name as for `validating`
     * @param {import('./policies.js').MutatingOptions<S>} options as for `validating`, and what it `writes`
     * @param {import('./policies.js').PolicyFunction<S, T>} judge as for `validating`
     * @returns {this} to register another one
     * @throws {RegistrationError} as for `validating`
     */
    mutating<S = any, T = any>(name: string, options: import("./policies.js").MutatingOptions<S>, judge: import("./policies.js").PolicyFunction<S, T>): this;
    /**
     * Serve inside a program or a test.
     *
     * @param {string} [address] `HOST:PORT` (port 0, the default: any), `unix:PATH` or `unix:///ABSOLUTE`
     * @param {import('./server.js').ServeOptions} [options]
     * @returns {Promise<Served>} `address` is for a gRPC client; `close()` ends it in order
     * @throws {import('./errors.js').AddressError} the address cannot be listened on
     * @throws {import('./errors.js').CertificateError} a certificate cannot be used
     */
    serve(address?: string, options?: import("./server.js").ServeOptions): Promise<Served>;
    /**
     * Run the worker's command: serve until SIGTERM or SIGINT, then end the process.
     *
     * @param {readonly string[]} [args] default: the process's own
     * @returns {Promise<never>}
     */
    main(args?: readonly string[]): Promise<never>;
    #private;
}
/**
 * What is served of a worker.
 */
export type Held = {
    name: string;
    version: string;
    policies: ReadonlyMap<string, Policy>;
};
import { Policy } from './policies.js';
import { Served } from './server.js';
