/**
 * Whether a call is cancelled. The AbortSignal is made when a policy first reads it: most policies never do, and a
 * signal costs more than a small policy.
 */
export class Cancellation {
  /** @type {AbortController | undefined} */
  #controller;
  /** @type {Error | undefined} */
  #reason;

  /** Aborted when the call is cancelled. @returns {AbortSignal} */
  get signal() {
    this.#controller ??= new AbortController();
    if (this.#reason !== undefined && !this.#controller.signal.aborted) this.#controller.abort(this.#reason);
    return this.#controller.signal;
  }

  /** Whether the call is cancelled. */
  get isCancelled() {
    return this.#reason !== undefined;
  }

  /**
   * Cancel the call. Only the first reason counts.
   *
   * @param {string} why the message of the signal's reason
   */
  cancel(why) {
    if (this.#reason !== undefined) return;
    this.#reason = new DOMException(why, 'AbortError');
    this.#controller?.abort(this.#reason);
  }
}
