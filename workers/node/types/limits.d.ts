/**
 * The defaults with what was given in their place.
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
 * @property {number} inFlight calls taken and not yet worked off; more are refused (`RESOURCE_EXHAUSTED`, on the stream
 *   a failure)
 * @property {number} messageBytes the largest gRPC message, received or sent, in bytes
 * @property {number} batchBytes up to which size outcomes are gathered into one message of the stream, in bytes
 * @property {number} settingsKept parsed settings that are kept, over all policies
 * @property {number} settingsKeptBytes their JSON text together, in bytes
 * @property {number} gracePeriod seconds for open calls when the worker stops
 */
/** @type {Readonly<Limits>} */
export const DEFAULTS: Readonly<Limits>;
/** Counts the calls that are being worked on, and says whether one more may be taken. */
export class InFlight {
    /** @param {number} limit how many at the same time */
    constructor(limit: number);
    /** Take one call. False: there is no room, and nothing was taken. */
    enter(): boolean;
    /** One call is worked off. */
    leave(): void;
    /** The sentence for whoever is refused: who, limit, next step. */
    refusal(): string;
    #private;
}
/**
 * The limits of one served worker.
 */
export type Limits = {
    /**
     * calls taken and not yet worked off; more are refused (`RESOURCE_EXHAUSTED`, on the stream
     * a failure)
     */
    inFlight: number;
    /**
     * the largest gRPC message, received or sent, in bytes
     */
    messageBytes: number;
    /**
     * up to which size outcomes are gathered into one message of the stream, in bytes
     */
    batchBytes: number;
    /**
     * parsed settings that are kept, over all policies
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
