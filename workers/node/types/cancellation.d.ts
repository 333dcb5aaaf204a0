/**
 * That nobody waits for an answer any more. The AbortSignal that says so is made when a policy first asks for it: most
 * never do, and one costs more than a small policy.
 */
export class Cancellation {
    /** Aborted when nobody waits any more. @returns {AbortSignal} */
    get signal(): AbortSignal;
    /** Whether nobody waits any more. */
    get isCancelled(): boolean;
    /**
     * Nobody waits any more.
     *
     * @param {string} why for whoever catches the signal's reason
     */
    cancel(why: string): void;
    #private;
}
