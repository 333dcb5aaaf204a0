/**
 * One `ReviewStream`: many calls over one stream, each answered as soon as its outcome is known.
 *
 * The rules:
 *
 * - An id is open from its call until its outcome is written. Each open id gets exactly one outcome, in any order: a
 *   verdict, or a failure if its timeout is over, its document is missing, or the worker is full. A cancelled call gets
 *   none.
 * - If an open id is used again, both calls get one failure and the first is cancelled, since the gateway could take
 *   the verdict of one for the other's.
 * - Synchronous functions run one after another for a time slice; then the event loop reads, writes and runs timers.
 *   Asynchronous functions run concurrently. So an outcome waits for another one only while a function computes.
 * - If the gateway does not read outcomes, the worker stops reading calls: unwritten outcomes are bounded
 *   (`outbox.js`).
 * - When the gateway half-closes the stream, open calls are answered, and the stream ends. When the worker stops, the
 *   stream still accepts calls, and ends when no call is open and none has arrived for `QUIET` milliseconds. When the
 *   stream breaks, all open calls are cancelled.
 */

import { status } from '@grpc/grpc-js';
import { Cancellation } from './cancellation.js';
import { reasonOf } from './errors.js';
import { Source } from './judging.js';
import { decoded, keyOf, secondsOf, typeNamed } from './messages.js';
import { Outbox } from './outbox.js';

/** @typedef {import('./messages.js').PolicyCall} PolicyCall */
/** @typedef {import('./messages.js').Uint64} Uint64 */

/**
 * Milliseconds for synchronous functions in one turn of the event loop: a hundred times a turn's overhead (10 µs), and
 * little compared with a network round trip.
 */
const SLICE = 1;

/**
 * Milliseconds without a message after which a stopping worker ends a stream: some round trips of a slow network, in
 * which the gateway has received NOT_SERVING over the same connection.
 */
export const QUIET = 500;

/** The longest delay of a Node.js timer, 24 days: a longer one would fire at once. */
const LONGEST_TIMER = 2 ** 31 - 1;

const REQUEST = typeNamed('ReviewStreamRequest');

/**
 * An open call. It counts as in flight until its function has ended.
 *
 * @typedef {object} OpenCall
 * @property {number | string} key
 * @property {Uint64} id
 * @property {PolicyCall} call
 * @property {Source | undefined} source
 * @property {number} deadline on `performance.now()`'s clock; Infinity: the end of the stream
 * @property {Cancellation} cancellation
 * @property {NodeJS.Timeout | undefined} timer
 * @property {boolean} isRunning
 */

/** Serves one stream. */
export class ReviewStream {
  #call;
  #judge;
  #inFlight;
  #log;
  #outbox;
  /** @type {Map<number | string, OpenCall>} */
  #open = new Map();
  /** Not yet begun, the next one last. @type {OpenCall[]} */
  #waiting = [];
  /** @type {NodeJS.Immediate | undefined} */
  #turn;
  #isHalfClosed = false;
  #isStopping = false;
  #isOver = false;
  #lastArrival = 0;
  /** @type {NodeJS.Timeout | undefined} */
  #quiet;

  /**
   * @param {import('@grpc/grpc-js').ServerDuplexStream<Buffer, Buffer>} call
   * @param {object} served
   * @param {import('./judging.js').Judge} served.judge calls the policies
   * @param {import('./limits.js').InFlight} served.inFlight shared with all other calls
   * @param {Readonly<import('./limits.js').Limits>} served.limits
   * @param {import('./logs.js').Log} served.log
   */
  constructor(call, { judge, inFlight, limits, log }) {
    this.#call = call;
    this.#judge = judge;
    this.#inFlight = inFlight;
    this.#log = log;
    this.#outbox = new Outbox(
      limits,
      (batch, done) => call.write(batch, () => done()),
      () => this.#changed(),
    );
  }

  /** Serve until the gateway half-closes, the worker stops, or the stream breaks. @param {() => void} ended */
  start(ended) {
    this.#call.on('data', received => this.#take(received));
    this.#call.on('end', () => {
      this.#isHalfClosed = true;
      this.#changed();
    });
    this.#call.once('cancelled', () => {
      this.#isOver = true;
      this.#dropAll();
      ended();
    });
  }

  /** End when no call is open and no more arrive. */
  stop() {
    if (this.#isStopping) return;
    this.#isStopping = true;
    this.#lastArrival = performance.now();
    this.#changed();
  }

  // ---------------------------------------------------------------------------------------------------------- in

  /** @param {Buffer} received */
  #take(received) {
    this.#lastArrival = performance.now();
    if (this.#isOver) return;
    let batch;
    try {
      batch = decoded(REQUEST, received);
    } catch (error) {
      this.#refuse(`not a ReviewStreamRequest: ${reasonOf(error)}`);
      return;
    }
    const sources = batch.documents.map((/** @type {Buffer} */ raw) => new Source(raw));
    const accepted = [];
    for (const item of batch.items) {
      if (item.item === 'call') {
        const open = this.#accept(item, sources);
        if (open !== undefined) accepted.push(open);
      } else if (item.item === 'cancel') {
        this.#drop(keyOf(item.id), 'the gateway no longer waits');
      } else {
        // An item of a newer contract: "Fields unknown to the receiver are ignored."
        this.#log.debug(`an item without call or cancel was ignored (id ${keyOf(item.id)})`);
      }
    }
    this.#waiting = [...accepted.reverse(), ...this.#waiting];
    this.#work();
    this.#changed();
  }

  /**
   * @param {import('./messages.js').RequestItem} item
   * @param {Source[]} sources of its message
   * @returns {OpenCall | undefined} undefined: a failure is its outcome
   */
  #accept({ id, call }, sources) {
    const key = keyOf(id);
    if (this.#open.has(key) || this.#outbox.has(key)) {
      this.#drop(key, 'the gateway used the id of this call again');
      const message = `the stream has an open call with id ${key} already: ids must be unique`;
      this.#outbox.add(key, id, this.#judge.failure(call, message));
      return undefined;
    }
    let source;
    if (call.documentSource === 'document') source = new Source(call.document);
    if (call.documentSource === 'documentIndex') {
      source = sources[call.documentIndex];
      if (source === undefined) {
        const message = `document_index is ${call.documentIndex}, and its message has ${sources.length} documents`;
        this.#outbox.add(key, id, this.#judge.failure(call, message));
        return undefined;
      }
    }
    if (!this.#inFlight.enter()) {
      this.#outbox.add(key, id, this.#judge.failure(call, this.#inFlight.refusal()));
      return undefined;
    }
    const deadline = call.timeout ? this.#lastArrival + secondsOf(call.timeout) * 1000 : Number.POSITIVE_INFINITY;
    const cancellation = new Cancellation();
    const open = { key, id, call, source, deadline, cancellation, timer: undefined, isRunning: false };
    this.#open.set(key, open);
    return open;
  }

  // -------------------------------------------------------------------------------------------------------- work

  /** Begin waiting calls for one time slice; the rest in the next turn of the event loop. */
  #work() {
    if (this.#turn !== undefined) return;
    const end = performance.now() + SLICE;
    for (let open = this.#waiting.pop(); open !== undefined; open = this.#waiting.pop()) {
      if (this.#open.get(open.key) === open) this.#begin(open);
      if (this.#waiting.length > 0 && performance.now() >= end) {
        this.#turn = setImmediate(() => {
          this.#turn = undefined;
          this.#work();
          this.#changed();
        });
        return;
      }
    }
  }

  /** @param {OpenCall} open */
  #begin(open) {
    const { call, source, cancellation, deadline } = open;
    if (performance.now() >= deadline) {
      this.#answer(open, this.#judge.timedOut(call));
      return;
    }
    const begun = this.#judge.begin(call, source, cancellation);
    if (Buffer.isBuffer(begun)) {
      this.#answer(open, performance.now() >= deadline ? this.#judge.timedOut(call) : begun);
      return;
    }
    open.isRunning = true;
    if (deadline - performance.now() <= LONGEST_TIMER) this.#setTimer(open);
    begun.then(outcome => this.#ended(open, outcome));
  }

  /** A timer may fire a little early; then it is set again. @param {OpenCall} open */
  #setTimer(open) {
    const left = open.deadline - performance.now();
    open.timer = setTimeout(
      () => (performance.now() < open.deadline ? this.#setTimer(open) : this.#expired(open)),
      Math.ceil(Math.max(0, left)),
    );
  }

  /** Answer a call whose function is not running. @param {OpenCall} open @param {Buffer} outcome */
  #answer(open, outcome) {
    this.#inFlight.leave();
    this.#open.delete(open.key);
    this.#outbox.add(open.key, open.id, outcome);
  }

  /** Answer at once and cancel; the call counts as in flight until its function has ended. @param {OpenCall} open */
  #expired(open) {
    this.#drop(open.key, "the call's timeout is over");
    this.#outbox.add(open.key, open.id, this.#judge.timedOut(open.call));
    this.#changed();
  }

  /** @param {OpenCall} open @param {Buffer} outcome */
  #ended(open, outcome) {
    this.#inFlight.leave();
    clearTimeout(open.timer);
    if (this.#open.get(open.key) !== open) return;
    this.#open.delete(open.key);
    this.#outbox.add(open.key, open.id, outcome);
    this.#changed();
  }

  /** Cancel a call; an unknown id is ignored. @param {number | string} key @param {string} why */
  #drop(key, why) {
    this.#outbox.remove(key);
    const open = this.#open.get(key);
    if (open === undefined) return;
    this.#open.delete(key);
    clearTimeout(open.timer);
    if (!open.isRunning) this.#inFlight.leave();
    open.cancellation.cancel(why);
  }

  #dropAll() {
    clearImmediate(this.#turn);
    clearTimeout(this.#quiet);
    for (const key of [...this.#open.keys()]) this.#drop(key, 'the stream has ended');
    this.#waiting = [];
    this.#outbox.close();
  }

  // --------------------------------------------------------------------------------------------------------- end

  /** After each message, outcome or write: pause or resume reading, and end the stream if it is idle. */
  #changed() {
    if (this.#isOver) return;
    if (this.#outbox.isFull) this.#call.pause();
    else if (this.#call.isPaused()) this.#call.resume();
    if (this.#open.size > 0 || !this.#outbox.isEmpty) return;
    if (this.#isHalfClosed) this.#end();
    else if (this.#isStopping) this.#endWhenQuiet();
  }

  #endWhenQuiet() {
    clearTimeout(this.#quiet);
    const left = this.#lastArrival + QUIET - performance.now();
    if (left <= 0) this.#end();
    else this.#quiet = setTimeout(() => this.#changed(), Math.ceil(left));
  }

  #end() {
    this.#isOver = true;
    clearTimeout(this.#quiet);
    this.#call.end();
  }

  /** @param {string} details why the message cannot be decoded */
  #refuse(details) {
    this.#isOver = true;
    this.#dropAll();
    this.#call.emit('error', { code: status.INVALID_ARGUMENT, details });
  }
}
