/**
 * One call to one outcome: the path that `Review` and `ReviewStream` share.
 *
 * Whatever happens here is an outcome. An error is not a verdict: a policy that throws, returns something absurd,
 * cannot read its document or its settings has failed, and the operator's failurePolicy decides. The type of what was
 * thrown goes to the gateway; its text and stack, which may hold a Secret, stay in the worker's log.
 *
 * `Judge.begin` gives the outcome at once where nothing has to be waited for, which is what makes a pure function
 * cheap, and otherwise a promise. JavaScript cannot stop a function that waits: cancelling aborts `request.signal`, and
 * what the function gives after that is dropped.
 */

import { InvalidAnswerError, InvalidDocumentError, InvalidSettingsError } from './errors.js';
import { remember } from './fidelity.js';
import { KeptSettings } from './kept_settings.js';
import { ENVELOPE_BYTES, encodedOutcome, PHASES, REASONS, secondsOf } from './messages.js';
import { accepted, failureOf, outcomeOf, verdictOf } from './outcomes.js';
import { Document, Request } from './request.js';
import { withNumbersOf } from './survival.js';
import { traced } from './tracing.js';
import { typeOf } from './values.js';

/** @typedef {import('./messages.js').PolicyCall} PolicyCall */
/** @typedef {import('./cancellation.js').Cancellation} Cancellation */
/** @typedef {import('./policies.js').Policy} Policy */
/** @typedef {{ policy: Policy, version: string, request: Request, document: Document, settings: any }} Question */
/** @typedef {import('./tracing.js').Judged} Judged */

/**
 * A document as it arrived: read when the first call needs it, and once for all that share it.
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
   * @throws {InvalidDocumentError} it is not one JSON object
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

/** Holds the policies and all that is kept between calls. One for each served worker. */
export class Judge {
  #worker;
  #limits;
  #log;
  #settings;

  /**
   * @param {import('./worker.js').Held} worker
   * @param {Readonly<import('./limits.js').Limits>} limits of settings kept and of the size of an outcome
   * @param {import('./logs.js').Log} log
   */
  constructor(worker, limits, log) {
    this.#worker = worker;
    this.#limits = limits;
    this.#log = log;
    this.#settings = new KeptSettings(limits);
  }

  /**
   * Take a call.
   *
   * @param {PolicyCall} call the question. Its document, timeout and trace context are the caller's affair
   * @param {Source | undefined} source its document; undefined: it has none
   * @param {{ traceparent: string, cancellation: Cancellation }} call
   * @returns {Buffer | Promise<Buffer>} the encoded Outcome. Neither throws
   */
  begin(call, source, { traceparent, cancellation }) {
    const question = this.#question(call, source, cancellation);
    if (Buffer.isBuffer(question)) return question;
    const { policy, request } = question;
    const judged = traced({ policy: policy.name, uid: request.uid, traceparent }, () => this.#put(question));
    return judged instanceof Promise ? judged.then(({ outcome }) => outcome) : judged.outcome;
  }

  /**
   * An Outcome that says why a call has no verdict, in its policy's version.
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
   * The Outcome of a call whose time is over.
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
   * The call with its settings and document read, or the failure that says why they cannot be.
   *
   * @param {PolicyCall} call
   * @param {Source | undefined} source
   * @param {Cancellation} cancellation
   * @returns {Question | Buffer}
   */
  #question(call, source, cancellation) {
    const policy = this.#worker.policies.get(call.policy);
    if (policy === undefined) {
      const held = [...this.#worker.policies.keys()].sort().join(', ') || 'none';
      const called = JSON.stringify(call.policy);
      return this.#refused(
        call,
        `worker ${this.#worker.name} holds no policy ${called}; it holds: ${held}`,
        REASONS.unknownPolicy,
      );
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
   * @param {Question} question
   * @returns {Judged | Promise<Judged>}
   */
  #put(question) {
    try {
      const returned = question.policy.judge(question.request, question.settings);
      if (typeof (/** @type {any} */ (returned)?.then) !== 'function') return this.#answered(question, returned);
      return Promise.resolve(returned).then(
        answer => this.#answered(question, answer),
        error => this.#threw(question, error),
      );
    } catch (error) {
      return this.#threw(question, error);
    }
  }

  /**
   * The outcome of what a function returned.
   *
   * @param {Question} question
   * @param {unknown} returned
   * @returns {Judged}
   */
  #answered(question, returned) {
    const { policy, version, request } = question;
    let outcome;
    let answer;
    try {
      answer = accepted(returned, policy.phase);
      outcome = encodedOutcome(this.#settled(outcomeOf(answer, version), question));
    } catch (error) {
      return this.#threw(question, error);
    }
    const limit = this.#limits.messageBytes - ENVELOPE_BYTES;
    if (outcome.length > limit) {
      const size = outcome.length;
      const message = `policy ${policy.name}: the answer has ${size} bytes, at most ${limit} fit a message: answer with a patch`;
      return this.#failed(question, message);
    }
    const verdict = verdictOf(answer);
    if (verdict === 'failure') {
      const said = /** @type {import('./answers.js').Failure} */ (answer).message;
      this.#log.warning(`policy ${policy.name} could not judge: ${said}`, { uid: request.uid, policy: policy.name });
    }
    return { outcome, verdict };
  }

  /**
   * The outcome with every number of the object that was sent, where the whole object goes back.
   *
   * @param {any} outcome
   * @param {Question} question
   */
  #settled(outcome, { document }) {
    const whole = outcome.allow?.object;
    if (whole === undefined) return outcome;
    const sent = JSON.parse(document.text);
    if (!remember(sent, document.text) || typeof sent.object !== 'object' || sent.object === null) return outcome;
    return { ...outcome, allow: { object: Buffer.from(withNumbersOf(whole.toString(), sent.object)) } };
  }

  /**
   * The outcome of a function that threw. Its text is shown only if it is one of ours, which hold no values.
   *
   * @param {Question} question
   * @param {unknown} error
   * @returns {Judged}
   */
  #threw(question, error) {
    const name = question.policy.name;
    const isOurs = error instanceof InvalidAnswerError || error instanceof InvalidDocumentError;
    const what = isOurs ? `${error.name}: ${error.message}` : `${typeName(error)}; see the worker's log`;
    return this.#failed(question, `policy ${name} threw ${what}`, error);
  }

  /**
   * @param {Question} question
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
 * The type of what was thrown. A name is only believed where a class has it: an error's `name` can be any text.
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
