/** A worker: a name, a version, and policies. */

import { runCommand } from './command.js';
import { RegistrationError } from './errors.js';
import { Policy } from './policies.js';
import { withProbes } from './probes.js';
import { Served } from './server.js';
import { isObject, typeOf } from './values.js';

/**
 * The served part of a worker; the policies include the probes.
 *
 * @typedef {{ name: string, version: string, policies: ReadonlyMap<string, Policy> }} ServedWorker
 */

/** Holds policies and serves them. */
export class Worker {
  /** @type {Map<string, Policy>} */
  #policies = new Map();

  /**
   * @param {string} name for logs, such as `labels`. It may differ from the name in the gateway's configuration
   * @param {object} options
   * @param {string} options.version of the worker's build, such as `1.4.2` or a commit. It must change whenever a
   *   verdict may change: it is part of the cache key
   * @throws {RegistrationError} the name or the version is missing
   */
  constructor(name, options) {
    if (typeof name !== 'string' || name === '')
      throw new RegistrationError('worker: a name is required, such as "labels"');
    const version = isObject(options) ? options.version : undefined;
    if (typeof version !== 'string' || version === '') {
      const shown = JSON.stringify(name);
      throw new RegistrationError(
        `worker ${shown}: { version } is required, such as "1.0.0", is ${typeOf(version)}; verdicts are cached by it`,
      );
    }
    this.name = name;
    this.version = version;
  }

  /** The registered policies by name. @returns {ReadonlyMap<string, Policy>} */
  get policies() {
    return this.#policies;
  }

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
  validating(name, options, judge) {
    return this.#register(new Policy(name, 'validating', options, judge));
  }

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
  mutating(name, options, judge) {
    return this.#register(new Policy(name, 'mutating', options, judge));
  }

  /**
   * Serve inside a program or a test.
   *
   * @param {string} [address] `HOST:PORT`, `unix:PATH` or `unix:///ABSOLUTE`; port 0, the default, is any free port
   * @param {import('./server.js').ServeOptions} [options]
   * @returns {Promise<Served>} `address` is the target for a gRPC client; `close()` stops the worker gracefully
   * @throws {import('./errors.js').AddressError} the worker cannot listen on the address
   * @throws {import('./errors.js').CertificateError} a certificate cannot be used
   */
  async serve(address = '127.0.0.1:0', options = {}) {
    const policies = options.conformance ? withProbes(this.#policies) : new Map(this.#policies);
    const served = new Served({ name: this.name, version: this.version, policies }, options);
    await served.start(address, options.tls);
    return served;
  }

  /**
   * Run the worker's command: serve until SIGTERM or SIGINT, then end the process.
   *
   * @param {readonly string[]} [args] default: the arguments of the process
   * @returns {Promise<never>}
   */
  main(args = process.argv.slice(2)) {
    return runCommand(this, args);
  }

  /** @param {Policy} policy */
  #register(policy) {
    if (this.#policies.has(policy.name)) {
      throw new RegistrationError(`worker ${this.name}: a policy ${JSON.stringify(policy.name)} is registered already`);
    }
    this.#policies.set(policy.name, policy);
    return this;
  }
}
