/**
 * The limits of a worker. A full worker refuses calls at once; calls never hang.
 *
 * Every number has the arithmetic that gave it. Those that an operator may want to change are flags of the worker's
 * command (`command.js`); `Worker.serve` accepts all of them.
 */

const MIB = 1024 * 1024;

/**
 * The limits of one served worker.
 *
 * @typedef {object} Limits
 * @property {number} inFlight concurrent calls; more are refused (`RESOURCE_EXHAUSTED`, on the stream a failure)
 * @property {number} messageBytes the largest gRPC message, received or sent, in bytes
 * @property {number} batchBytes up to which size outcomes are batched into one message of the stream, in bytes
 * @property {number} settingsKept parsed settings that are cached, over all policies
 * @property {number} settingsKeptBytes their JSON text together, in bytes
 * @property {number} gracePeriod seconds for open calls when the worker stops
 */

/** @type {Readonly<Limits>} */
export const DEFAULTS = Object.freeze({
  // 16 gateways with 256 calls each. A call is a few KB besides its document, so 4,096 of them are some 20 MB.
  inFlight: 4096,
  // The gateway accepts bodies of 20 MB. A document is at most that body, and mutating policies before this one may
  // have enlarged it; a whole object in an answer may be larger again. Twice the body, and 1 MiB for settings and the
  // other fields; the gateway's own limit is the same.
  messageBytes: 2 * 20_000_000 + MIB,
  // gRPC's default limit of a receiver: a gateway that sets no limit can read every batch. A larger outcome is sent
  // alone, up to `messageBytes`.
  batchBytes: 4 * MIB,
  // One for each policy of a large configuration.
  settingsKept: 256,
  // A custom resource is at most 1.5 MB (etcd's limit), so ten of the largest fit.
  settingsKeptBytes: 16 * MIB,
  // The gateway kills a worker that it started after 10, Kubernetes after 30 by default; 2 are left for the rest of the
  // shutdown.
  gracePeriod: 8,
});

/**
 * The defaults, with the given limits in their place.
 *
 * @param {Partial<Limits>} [given]
 * @returns {Readonly<Limits>}
 * @throws {RangeError} an unknown limit, or one that is not positive (`gracePeriod` may be 0)
 */
export function limitsOf(given = {}) {
  for (const [name, value] of Object.entries(given)) {
    if (!Object.hasOwn(DEFAULTS, name)) {
      throw new RangeError(`limit ${name}: unknown; there are ${Object.keys(DEFAULTS).join(', ')}`);
    }
    const smallest = name === 'gracePeriod' ? 0 : 1;
    const whole = name === 'gracePeriod' || Number.isSafeInteger(value);
    if (typeof value !== 'number' || !(value >= smallest) || !whole) {
      throw new RangeError(`limit ${name}: must be a number of at least ${smallest}, is ${String(value)}`);
    }
  }
  return Object.freeze({ ...DEFAULTS, ...given });
}

/** Counts the calls in flight, up to a limit. */
export class InFlight {
  #limit;
  #count = 0;

  /** @param {number} limit of concurrent calls */
  constructor(limit) {
    this.#limit = limit;
  }

  /** Count one call. False: the limit is reached, and the call is not counted. */
  enter() {
    if (this.#count >= this.#limit) return false;
    this.#count += 1;
    return true;
  }

  /** One call has ended. */
  leave() {
    this.#count -= 1;
  }

  /** The message of a refused call. */
  refusal() {
    const next = 'run more replicas, or raise --in-flight (ADMISSION_WORKER_IN_FLIGHT)';
    return `the worker has its limit of ${this.#limit} calls in flight: ${next}`;
  }
}
