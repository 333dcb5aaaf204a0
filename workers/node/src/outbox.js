/**
 * The outcomes of one stream that are not yet written. What is known at once travels together: everything of one turn
 * of the event loop in one message, up to a size. One message is on its way at a time, so a peer that does not read
 * leaves the rest here, where it is counted: then the stream reads no more (`isFull`).
 */

import { ENVELOPE_BYTES, encodedBatch } from './messages.js';

/** @typedef {import('./messages.js').Uint64} Uint64 */

export class Outbox {
  #write;
  #limits;
  /** @type {Map<number | string, { id: Uint64, outcome: Buffer }>} */
  #waiting = new Map();
  #bytes = 0;
  #isWriting = false;
  /** @type {NodeJS.Immediate | undefined} */
  #turn;

  /**
   * @param {Readonly<import('./limits.js').Limits>} limits of a batch, and of what waits
   * @param {(batch: Buffer, done: () => void) => void} write sends one message, and says when it has been taken
   * @param {() => void} written called whenever there is room again
   */
  constructor(limits, write, written) {
    this.#limits = limits;
    this.#write = write;
    this.written = written;
  }

  /** Whether everything has been written. */
  get isEmpty() {
    return this.#waiting.size === 0 && !this.#isWriting;
  }

  /** Whether so much waits that nothing more should be taken. */
  get isFull() {
    return this.#waiting.size > this.#limits.inFlight || this.#bytes > this.#limits.messageBytes;
  }

  /**
   * @param {number | string} key of the id
   * @returns {boolean} whether its outcome waits here
   */
  has(key) {
    return this.#waiting.has(key);
  }

  /**
   * @param {number | string} key
   * @param {Uint64} id
   * @param {Buffer} outcome encoded
   */
  add(key, id, outcome) {
    this.remove(key);
    this.#waiting.set(key, { id, outcome });
    this.#bytes += outcome.length;
    this.#turn ??= setImmediate(() => this.#flush());
  }

  /** @param {number | string} key whose outcome nobody waits for any more */
  remove(key) {
    const found = this.#waiting.get(key);
    if (found === undefined) return;
    this.#waiting.delete(key);
    this.#bytes -= found.outcome.length;
  }

  /** Write no more: the stream is gone. */
  close() {
    clearImmediate(this.#turn);
    this.#waiting.clear();
    this.#bytes = 0;
  }

  #flush() {
    this.#turn = undefined;
    if (this.#isWriting || this.#waiting.size === 0) return;
    this.#isWriting = true;
    this.#write(encodedBatch(this.#batch()), () => {
      this.#isWriting = false;
      this.#flush();
      this.written();
    });
  }

  /** The oldest outcomes that fit one message; the oldest one in any case. */
  #batch() {
    const batch = [];
    let room = Math.min(this.#limits.batchBytes, this.#limits.messageBytes);
    for (const [key, item] of this.#waiting) {
      room -= item.outcome.length + ENVELOPE_BYTES;
      if (room < 0 && batch.length > 0) break;
      batch.push(item);
      this.remove(key);
    }
    return batch;
  }
}
