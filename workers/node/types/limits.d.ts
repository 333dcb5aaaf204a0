/**
 * The defaults, with the given limits in their place.
 *
 * @param {Partial<Limits>} [given]
 * @returns {Readonly<Limits>}
 * @throws {RangeError} an unknown limit, or one that is not positive (`gracePeriod` may be 0)
 */
export function limitsOf(given?: Partial<Limits>): Readonly<Limits>;
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
export const DEFAULTS: Readonly<Limits>;
/** Counts the calls in flight, up to a limit. */
export class InFlight {
    /** @param {number} limit of concurrent calls */
    constructor(limit: number);
    /** Count one call. False: the limit is reached, and the call is not counted. */
    enter(): boolean;
    /** One call has ended. */
    leave(): void;
    /** The message of a refused call. */
    refusal(): string;
    #private;
}
/**
 * The limits of one served worker.
 */
export type Limits = {
    /**
     * concurrent calls; more are refused (`RESOURCE_EXHAUSTED`, on the stream a failure)
     */
    inFlight: number;
    /**
     * the largest gRPC message, received or sent, in bytes
     */
    messageBytes: number;
    /**
     * up to which size outcomes are batched into one message of the stream, in bytes
     */
    batchBytes: number;
    /**
     * parsed settings that are cached, over all policies
     */
    settingsKept: number;
    /**
     * their JSON text together, in bytes
     */
    settingsKeptBytes: number;
    /**
     * seconds for open calls when the worker stops
     */
    gracePeriod: number;
};
