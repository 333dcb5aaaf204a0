/**
 * One `ReviewStream`: many calls over one connection, each answered as soon as it is known.
 *
 * The rules:
 *
 * - An id is open from its call until its outcome is written. Each open id gets exactly one outcome, in any order: a
 *   verdict, or a failure when its time is over, its document is not there, or the worker is full. A cancelled one
 *   gets none.
 * - An id that comes again while it is open is two questions with one name: the first is dropped and a failure is the
 *   answer to both, since a verdict could be taken for the other's.
 * - Functions that give their answer at once run one after another for a slice of time; then the event loop reads,
 *   writes and keeps time. Promises are waited for beside it. So an outcome waits for no other one, a function that
 *   computes excepted while it runs.
 * - A gateway that does not read its answers is not read either: what is not written is bounded (`outbox.js`).
 * - When the gateway half-closes, what is open is answered, and the stream ends. When the worker is told to stop, the
 *   stream is still read and answered, and ends when nothing is open and nothing has come for `QUIET` milliseconds.
 *   When the stream breaks, everything open is cancelled.
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
 * Milliseconds for plain functions before the loop turns: a hundred turns' overhead (10 µs), so it costs a hundredth;
 * and less than anybody waiting for an answer over a network notices.
 */
const SLICE = 1;

/**
 * Milliseconds without a message after which a stopping worker takes it that its gateway sends no more: some round
 * trips of a slow network, since the gateway has been told by then (health, over the same connection).
 */
export const QUIET = 500;

/** The longest delay of a timer of Node.js, 24 days: a longer one would end at once. */
const LONGEST_TIMER = 2 ** 31 - 1;

const REQUEST = typeNamed('ReviewStreamRequest');

/**
 * An open call. It holds one place in flight until its work has ended.
 *
 * @typedef {object} Opened
 * @property {number | string} key
 * @property {Uint64} id
 * @property {PolicyCall} call
 * @property {Source | undefined} source
 * @property {number} deadline on `performance.now()`'s clock; Infinity: as long as the stream lives
 * @property {Cancellation} cancellation
 * @property {NodeJS.Timeout | undefined} timer
 * @property {boolean} isRunning
 */

/** Serves one stream. */
export class Conversation {
  #call;
  #judge;
  #inFlight;
  #log;
  #outbox;
  /** @type {Map<number | string, Opened>} */
  #open = new Map();
  /** Opened and not begun, the next one last. @type {Opened[]} */
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
   * @param {import('./judging.js').Judge} served.judge answers
   * @param {import('./limits.js').InFlight} served.inFlight places for calls, shared with all other calls
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

  /** Answer until the gateway half-closes, the worker stops, or the stream breaks. @param {() => void} ended */
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

  /** End as soon as nothing is open and nothing more comes. */
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
    const opened = [];
    for (const item of batch.items) {
      if (item.item === 'call') {
        const called = this.#opened(item, sources);
        if (called !== undefined) opened.push(called);
      } else if (item.item === 'cancel') {
        this.#drop(keyOf(item.id), 'the gateway waits for it no longer');
      } else {
        // Of a newer contract: "Fields unknown to the receiver are ignored."
        this.#log.debug(`an item without call or cancel was ignored (id ${keyOf(item.id)})`);
      }
    }
    this.#waiting = [...opened.reverse(), ...this.#waiting];
    this.#work();
    this.#changed();
  }

  /**
   * @param {import('./messages.js').RequestItem} item
   * @param {Source[]} sources of its message
   * @returns {Opened | undefined} undefined: it has its answer
   */
  #opened({ id, call }, sources) {
    const key = keyOf(id);
    if (this.#open.has(key) || this.#outbox.has(key)) {
      this.#drop(key, 'its id came again');
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
    const called = { key, id, call, source, deadline, cancellation, timer: undefined, isRunning: false };
    this.#open.set(key, called);
    return called;
  }

  // -------------------------------------------------------------------------------------------------------- work

  /** Begin what waits, for one slice; the rest in the loop's next turn. */
  #work() {
    if (this.#turn !== undefined) return;
    const end = performance.now() + SLICE;
    for (let called = this.#waiting.pop(); called !== undefined; called = this.#waiting.pop()) {
      if (this.#open.get(called.key) === called) this.#begin(called);
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

  /** @param {Opened} called */
  #begin(called) {
    const { call, source, cancellation, deadline } = called;
    if (performance.now() >= deadline) {
      this.#closed(called, this.#judge.timedOut(call));
      return;
    }
    const begun = this.#judge.begin(call, source, { traceparent: call.traceparent, cancellation });
    if (Buffer.isBuffer(begun)) {
      this.#closed(called, performance.now() >= deadline ? this.#judge.timedOut(call) : begun);
      return;
    }
    called.isRunning = true;
    if (deadline - performance.now() <= LONGEST_TIMER) this.#setTimer(called);
    begun.then(outcome => this.#ended(called, outcome));
  }

  /** A timer may fire a little before its time: then it is set again. @param {Opened} called */
  #setTimer(called) {
    const left = called.deadline - performance.now();
    called.timer = setTimeout(
      () => (performance.now() < called.deadline ? this.#setTimer(called) : this.#expired(called)),
      Math.ceil(Math.max(0, left)),
    );
  }

  /** Answer an ask for which nothing is running. @param {Opened} called @param {Buffer} outcome */
  #closed(called, outcome) {
    this.#inFlight.leave();
    this.#open.delete(called.key);
    this.#outbox.add(called.key, called.id, outcome);
  }

  /** Answer at once; the work is cancelled, and its place is free when it has really ended. @param {Opened} called */
  #expired(called) {
    this.#drop(called.key, 'its time is over');
    this.#outbox.add(called.key, called.id, this.#judge.timedOut(called.call));
    this.#changed();
  }

  /** @param {Opened} called @param {Buffer} outcome */
  #ended(called, outcome) {
    this.#inFlight.leave();
    clearTimeout(called.timer);
    if (this.#open.get(called.key) !== called) return;
    this.#open.delete(called.key);
    this.#outbox.add(called.key, called.id, outcome);
    this.#changed();
  }

  /** Nobody waits for this id any more. An unknown one is ignored. @param {number | string} key @param {string} why */
  #drop(key, why) {
    this.#outbox.remove(key);
    const called = this.#open.get(key);
    if (called === undefined) return;
    this.#open.delete(key);
    clearTimeout(called.timer);
    if (!called.isRunning) this.#inFlight.leave();
    called.cancellation.cancel(why);
  }

  #dropAll() {
    clearImmediate(this.#turn);
    clearTimeout(this.#quiet);
    for (const key of [...this.#open.keys()]) this.#drop(key, 'the stream is over');
    this.#waiting = [];
    this.#outbox.close();
  }

  // --------------------------------------------------------------------------------------------------------- end

  /** Something was taken, answered or written: read on or not, and end if nothing is left. */
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

  /** @param {string} details why the message cannot be read */
  #refuse(details) {
    this.#isOver = true;
    this.#dropAll();
    this.#call.emit('error', { code: status.INVALID_ARGUMENT, details });
  }
}
