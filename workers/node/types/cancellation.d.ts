/**
 * Whether a call is cancelled. The AbortSignal is made when a policy first reads it: most policies never do, and a
 * signal costs more than a small policy.
 */
export class Cancellation {
    /** Aborted when the call is cancelled. @returns {AbortSignal} */
    get signal(): AbortSignal;
    /** Whether the call is cancelled. */
    get isCancelled(): boolean;
    /**
     * Cancel the call. Only the first reason counts.
     *
     * @param {string} why the message of the signal's reason
     */
    cancel(why: string): void;
    #private;
}
