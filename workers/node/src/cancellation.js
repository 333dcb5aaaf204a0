/**
 * That nobody waits for an answer any more. The AbortSignal that says so is made when a policy first asks for it: most
 * never do, and one costs more than a small policy.
 */
export class Cancellation {
  /** @type {AbortController | undefined} */
  #controller;
  /** @type {Error | undefined} */
  #reason;

  /** Aborted when nobody waits any more. @returns {AbortSignal} */
  get signal() {
    this.#controller ??= new AbortController();
    if (this.#reason !== undefined && !this.#controller.signal.aborted) this.#controller.abort(this.#reason);
    return this.#controller.signal;
  }

  /** Whether nobody waits any more. */
  get isCancelled() {
    return this.#reason !== undefined;
  }

  /**
   * Nobody waits any more.
   *
   * @param {string} why for whoever catches the signal's reason
   */
  cancel(why) {
    if (this.#reason !== undefined) return;
    this.#reason = new DOMException(why, 'AbortError');
    this.#controller?.abort(this.#reason);
  }
}
