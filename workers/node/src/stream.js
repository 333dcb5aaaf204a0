/**
 * One `ReviewStream`: many asks over one connection, each answered as soon as it is known.
 *
 * The rules:
 *
 * - An id is open from its ask until its outcome is written. Each open id gets exactly one outcome, in any order: a
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

/** @typedef {import('./messages.js').Ask} Ask */
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
 * An open ask. It holds one place in flight until its work has ended.
 *
 * @typedef {object} Opened
 * @property {number | string} key
 * @property {Uint64} id
 * @property {Ask} ask
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
   * @param {import('./limits.js').InFlight} served.inFlight places for asks, shared with all other calls
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
      if (item.item === 'ask') {
        const asked = this.#opened(item, sources);
        if (asked !== undefined) opened.push(asked);
      } else if (item.item === 'cancel') {
        this.#drop(keyOf(item.id), 'the gateway waits for it no longer');
      } else {
        // Of a newer contract: "Fields unknown to the receiver are ignored."
        this.#log.debug(`an item without ask or cancel was ignored (id ${keyOf(item.id)})`);
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
  #opened({ id, ask }, sources) {
    const key = keyOf(id);
    if (this.#open.has(key) || this.#outbox.has(key)) {
      this.#drop(key, 'its id came again');
      const message = `the stream has an open ask with id ${key} already: ids must be unique`;
      this.#outbox.add(key, id, this.#judge.failure(ask, message));
      return undefined;
    }
    let source;
    if (ask.documentSource === 'document') source = new Source(ask.document);
    if (ask.documentSource === 'documentIndex') {
      source = sources[ask.documentIndex];
      if (source === undefined) {
        const message = `document_index is ${ask.documentIndex}, and its message has ${sources.length} documents`;
        this.#outbox.add(key, id, this.#judge.failure(ask, message));
        return undefined;
      }
    }
    if (!this.#inFlight.enter()) {
      this.#outbox.add(key, id, this.#judge.failure(ask, this.#inFlight.refusal()));
      return undefined;
    }
    const deadline = ask.timeout ? this.#lastArrival + secondsOf(ask.timeout) * 1000 : Number.POSITIVE_INFINITY;
    const cancellation = new Cancellation();
    const asked = { key, id, ask, source, deadline, cancellation, timer: undefined, isRunning: false };
    this.#open.set(key, asked);
    return asked;
  }

  // -------------------------------------------------------------------------------------------------------- work

  /** Begin what waits, for one slice; the rest in the loop's next turn. */
  #work() {
    if (this.#turn !== undefined) return;
    const end = performance.now() + SLICE;
    for (let asked = this.#waiting.pop(); asked !== undefined; asked = this.#waiting.pop()) {
      if (this.#open.get(asked.key) === asked) this.#begin(asked);
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

  /** @param {Opened} asked */
  #begin(asked) {
    const { ask, source, cancellation, deadline } = asked;
    if (performance.now() >= deadline) {
      this.#closed(asked, this.#judge.timedOut(ask));
      return;
    }
    const begun = this.#judge.begin(ask, source, { traceparent: ask.traceparent, cancellation });
    if (Buffer.isBuffer(begun)) {
      this.#closed(asked, performance.now() >= deadline ? this.#judge.timedOut(ask) : begun);
      return;
    }
    asked.isRunning = true;
    if (deadline - performance.now() <= LONGEST_TIMER) this.#setTimer(asked);
    begun.then(outcome => this.#ended(asked, outcome));
  }

  /** A timer may fire a little before its time: then it is set again. @param {Opened} asked */
  #setTimer(asked) {
    const left = asked.deadline - performance.now();
    asked.timer = setTimeout(
      () => (performance.now() < asked.deadline ? this.#setTimer(asked) : this.#expired(asked)),
      Math.ceil(Math.max(0, left)),
    );
  }

  /** Answer an ask for which nothing is running. @param {Opened} asked @param {Buffer} outcome */
  #closed(asked, outcome) {
    this.#inFlight.leave();
    this.#open.delete(asked.key);
    this.#outbox.add(asked.key, asked.id, outcome);
  }

  /** Answer at once; the work is cancelled, and its place is free when it has really ended. @param {Opened} asked */
  #expired(asked) {
    this.#drop(asked.key, 'its time is over');
    this.#outbox.add(asked.key, asked.id, this.#judge.timedOut(asked.ask));
    this.#changed();
  }

  /** @param {Opened} asked @param {Buffer} outcome */
  #ended(asked, outcome) {
    this.#inFlight.leave();
    clearTimeout(asked.timer);
    if (this.#open.get(asked.key) !== asked) return;
    this.#open.delete(asked.key);
    this.#outbox.add(asked.key, asked.id, outcome);
    this.#changed();
  }

  /** Nobody waits for this id any more. An unknown one is ignored. @param {number | string} key @param {string} why */
  #drop(key, why) {
    this.#outbox.remove(key);
    const asked = this.#open.get(key);
    if (asked === undefined) return;
    this.#open.delete(key);
    clearTimeout(asked.timer);
    if (!asked.isRunning) this.#inFlight.leave();
    asked.cancellation.cancel(why);
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
