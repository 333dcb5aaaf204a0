/**
 * From a policy call to its outcome: the part that `Review` and `ReviewStream` share.
 *
 * Every call gets an outcome. An error is not a verdict: a policy that throws, returns something that is not an answer,
 * or cannot read its document or settings has failed, and the operator's failurePolicy decides. The gateway receives
 * the type of the error; its text and stack, which may contain a Secret, stay in the worker's log.
 *
 * `Judge.begin` returns the outcome of a synchronous function directly, which keeps such a call cheap, and a promise
 * otherwise. JavaScript cannot stop an asynchronous function: cancellation aborts `request.signal`, and a later result
 * is dropped.
 */

import { InvalidAnswerError, InvalidDocumentError, InvalidSettingsError } from './errors.js';
import { remember } from './fidelity.js';
import { ENVELOPE_BYTES, encodedOutcome, PHASES, REASONS, secondsOf } from './messages.js';
import { accepted, failureOf, outcomeOf, verdictOf } from './outcomes.js';
import { Document, Request } from './request.js';
import { withNumbersOf } from './restored_numbers.js';
import { SettingsCache } from './settings_cache.js';
import { traced } from './tracing.js';
import { typeOf } from './values.js';

/** @typedef {import('./messages.js').PolicyCall} PolicyCall */
/** @typedef {import('./cancellation.js').Cancellation} Cancellation */
/** @typedef {import('./policies.js').Policy} Policy */
/** @typedef {{ policy: Policy, version: string, request: Request, document: Document, settings: any }} PreparedCall */
/** @typedef {import('./tracing.js').Judged} Judged */

/**
 * A received document: parsed when the first call needs it, once for all calls that share it.
 */
export class Source {
  /** @type {Document | InvalidDocumentError | undefined} */
  #read;

  /** @param {Buffer} raw */
  constructor(raw) {
    this.raw = raw;
  }

  /**
   * @returns {Document}
   * @throws {InvalidDocumentError} not a JSON object
   */
  read() {
    if (this.#read === undefined) {
      try {
        this.#read = new Document(this.raw);
      } catch (error) {
        this.#read = /** @type {InvalidDocumentError} */ (error);
      }
    }
    if (this.#read instanceof Document) return this.#read;
    throw this.#read;
  }
}

/** Calls the policies of one served worker, and caches their settings. */
export class Judge {
  #worker;
  #limits;
  #log;
  #settings;

  /**
   * @param {import('./worker.js').ServedWorker} worker
   * @param {Readonly<import('./limits.js').Limits>} limits of the settings cache and of an outcome's size
   * @param {import('./logs.js').Log} log
   */
  constructor(worker, limits, log) {
    this.#worker = worker;
    this.#limits = limits;
    this.#log = log;
    this.#settings = new SettingsCache(limits);
  }

  /**
   * Begin a call.
   *
   * @param {PolicyCall} call its document and timeout are left to the caller
   * @param {Source | undefined} source its document, if it has one
   * @param {Cancellation} cancellation
   * @returns {Buffer | Promise<Buffer>} the encoded Outcome. Never throws or rejects
   */
  begin(call, source, cancellation) {
    const prepared = this.#prepare(call, source, cancellation);
    if (Buffer.isBuffer(prepared)) return prepared;
    const { policy, request } = prepared;
    const { traceparent, tracestate } = call;
    const judged = traced({ policy: policy.name, uid: request.uid, traceparent, tracestate }, () =>
      this.#run(prepared),
    );
    return judged instanceof Promise ? judged.then(({ outcome }) => outcome) : judged.outcome;
  }

  /**
   * The Outcome of a call without a verdict, with its policy's version.
   *
   * @param {PolicyCall} call
   * @param {string} message
   * @param {number} [reason]
   * @returns {Buffer}
   */
  failure(call, message, reason) {
    const version = this.#worker.policies.get(call.policy)?.version || this.#worker.version;
    return encodedOutcome(failureOf(message, version, reason));
  }

  /**
   * The Outcome of a call that exceeded its timeout.
   *
   * @param {PolicyCall} call of the stream
   * @returns {Buffer}
   */
  timedOut(call) {
    const seconds = call.timeout ? secondsOf(call.timeout) : 0;
    const message = `policy ${call.policy}: no answer within the call's timeout of ${seconds} s`;
    this.#log.warning(message, { uid: call.uid, policy: call.policy });
    return this.failure(call, message);
  }

  /**
   * Find the policy and read settings and document; the encoded Outcome if one of these fails.
   *
   * @param {PolicyCall} call
   * @param {Source | undefined} source
   * @param {Cancellation} cancellation
   * @returns {PreparedCall | Buffer}
   */
  #prepare(call, source, cancellation) {
    const policy = this.#worker.policies.get(call.policy);
    if (policy === undefined) {
      const held = [...this.#worker.policies.keys()].sort().join(', ') || 'none';
      const message = `worker ${this.#worker.name} holds no policy ${JSON.stringify(call.policy)}; it holds: ${held}`;
      return this.#refused(call, message, REASONS.unknownPolicy);
    }
    if (call.phase !== PHASES[policy.phase]) {
      const message = `policy ${policy.name} is for the ${policy.phase} phase and was called in ${phaseNamed(call.phase)}`;
      return this.#refused(call, message, REASONS.unknownPolicy);
    }
    if (source === undefined) return this.#refused(call, `policy ${policy.name} was called without a document`);
    try {
      const settings = this.#settings.read(policy, call.settings);
      const document = source.read();
      const request = new Request(document, call.uid, cancellation);
      return { policy, version: policy.version || this.#worker.version, request, document, settings };
    } catch (error) {
      if (error instanceof InvalidSettingsError) {
        const message = `settings of policy ${policy.name}: ${error.message}`;
        return this.#refused(call, message, REASONS.invalidSettings, error.cause);
      }
      if (error instanceof InvalidDocumentError) return this.#refused(call, `policy ${policy.name}: ${error.message}`);
      return this.#refused(call, `policy ${policy.name}: ${typeName(error)}; see the worker's log`, undefined, error);
    }
  }

  /**
   * Call the policy's function.
   *
   * @param {PreparedCall} prepared
   * @returns {Judged | Promise<Judged>}
   */
  #run(prepared) {
    try {
      const returned = prepared.policy.judge(prepared.request, prepared.settings);
      if (typeof (/** @type {any} */ (returned)?.then) !== 'function') return this.#returned(prepared, returned);
      return Promise.resolve(returned).then(
        answer => this.#returned(prepared, answer),
        error => this.#threw(prepared, error),
      );
    } catch (error) {
      return this.#threw(prepared, error);
    }
  }

  /**
   * The outcome of a function that returned.
   *
   * @param {PreparedCall} prepared
   * @param {unknown} returned
   * @returns {Judged}
   */
  #returned(prepared, returned) {
    const { policy, version, request } = prepared;
    let outcome;
    let answer;
    try {
      answer = accepted(returned, policy.phase);
      outcome = encodedOutcome(this.#withNumbers(outcomeOf(answer, version), prepared));
    } catch (error) {
      return this.#threw(prepared, error);
    }
    const limit = this.#limits.messageBytes - ENVELOPE_BYTES;
    if (outcome.length > limit) {
      const size = outcome.length;
      const message = `policy ${policy.name}: the answer has ${size} bytes, at most ${limit} fit a message: answer with a patch`;
      return this.#failed(prepared, message);
    }
    const verdict = verdictOf(answer);
    if (verdict === 'failure') {
      const { message } = /** @type {import('./answers.js').Failure} */ (answer);
      this.#log.warning(`policy ${policy.name} could not judge: ${message}`, { uid: request.uid, policy: policy.name });
    }
    return { outcome, verdict };
  }

  /**
   * The outcome; in a whole object, numbers that the policy did not change have the text that was sent.
   *
   * @param {any} outcome
   * @param {PreparedCall} prepared
   */
  #withNumbers(outcome, { document }) {
    const whole = outcome.allow?.object;
    if (whole === undefined) return outcome;
    const sent = JSON.parse(document.text);
    if (!remember(sent, document.text) || typeof sent.object !== 'object' || sent.object === null) return outcome;
    return { ...outcome, allow: { object: Buffer.from(withNumbersOf(whole.toString(), sent.object)) } };
  }

  /**
   * The outcome of a function that threw. Only this SDK's errors are shown with their text, which contains no values.
   *
   * @param {PreparedCall} prepared
   * @param {unknown} error
   * @returns {Judged}
   */
  #threw(prepared, error) {
    const name = prepared.policy.name;
    const isOurs = error instanceof InvalidAnswerError || error instanceof InvalidDocumentError;
    const what = isOurs ? `${error.name}: ${error.message}` : `${typeName(error)}; see the worker's log`;
    return this.#failed(prepared, `policy ${name} threw ${what}`, error);
  }

  /**
   * @param {PreparedCall} prepared
   * @param {string} message
   * @param {unknown} [error]
   * @returns {Judged}
   */
  #failed({ policy, version, request }, message, error) {
    this.#log.error(message, { uid: request.uid, policy: policy.name, error });
    return { outcome: encodedOutcome(failureOf(message, version)), verdict: 'failure' };
  }

  /**
   * @param {PolicyCall} call
   * @param {string} message
   * @param {number} [reason]
   * @param {unknown} [error]
   * @returns {Buffer}
   */
  #refused(call, message, reason, error) {
    this.#log.error(message, { uid: call.uid, policy: call.policy, error });
    return this.failure(call, message, reason);
  }
}

/**
 * The type of a thrown value: the class name, since an error's `name` can be any text.
 *
 * @param {unknown} error
 * @returns {string}
 */
function typeName(error) {
  return error instanceof Error ? error.constructor.name || 'Error' : typeOf(error);
}

/** @param {number} number */
function phaseNamed(number) {
  const found = Object.entries(PHASES).find(([, value]) => value === number);
  return found ? `the ${found[0]} phase` : `no phase (${number})`;
}
