/**
 * The unwritten outcomes of one stream. Outcomes of one turn of the event loop are batched into one message, up to a
 * size. One message is written at a time, so outcomes for a gateway that does not read accumulate here; when they reach
 * the limit (`isFull`), the stream stops reading.
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
   * @param {Readonly<import('./limits.js').Limits>} limits of a batch, and of unwritten outcomes
   * @param {(batch: Buffer, done: () => void) => void} write sends one message, and calls `done` when it is written
   * @param {() => void} written called after each written message
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

  /** Whether unwritten outcomes exceed the limits, so that the stream must stop reading. */
  get isFull() {
    return this.#waiting.size > this.#limits.inFlight || this.#bytes > this.#limits.messageBytes;
  }

  /**
   * @param {number | string} key of the id
   * @returns {boolean} whether its outcome is not yet written
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

  /** @param {number | string} key of a cancelled call */
  remove(key) {
    const found = this.#waiting.get(key);
    if (found === undefined) return;
    this.#waiting.delete(key);
    this.#bytes -= found.outcome.length;
  }

  /** Discard everything: the stream has ended. */
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

  /** The oldest outcomes that fit one message; at least one. */
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
