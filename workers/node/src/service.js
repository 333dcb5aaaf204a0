/**
 * The contract's four RPCs, for one worker.
 *
 * A message that cannot be decoded gets INVALID_ARGUMENT, a call beyond the limit RESOURCE_EXHAUSTED; every other call
 * gets an answer. A gRPC status is a failure of the call and never a verdict.
 */

import { status } from '@grpc/grpc-js';
import { Cancellation } from './cancellation.js';
import { InvalidSettingsError, reasonOf } from './errors.js';
import { Judge, Source } from './judging.js';
import { InFlight } from './limits.js';
import { decoded, encodedMessage, encodedResponse, typeNamed } from './messages.js';
import { ReviewStream } from './stream.js';

/** @typedef {import('@grpc/grpc-js').ServerUnaryCall<Buffer, Buffer>} UnaryCall */
/** @typedef {import('@grpc/grpc-js').sendUnaryData<Buffer>} Answer */

const DESCRIBE_REQUEST = typeNamed('DescribeRequest');
const DESCRIBE_RESPONSE = typeNamed('DescribeResponse');
const VALIDATE_REQUEST = typeNamed('ValidateSettingsRequest');
const VALIDATE_RESPONSE = typeNamed('ValidateSettingsResponse');
const REVIEW_REQUEST = typeNamed('ReviewRequest');

/** Serves the four RPCs. */
export class Service {
  #worker;
  #limits;
  #log;
  #judge;
  #inFlight;
  #description;
  /** @type {Set<ReviewStream>} */
  #streams = new Set();
  #isStopping = false;

  /**
   * @param {import('./worker.js').ServedWorker} worker
   * @param {Readonly<import('./limits.js').Limits>} limits
   * @param {import('./logs.js').Log} log
   * @param {() => void} changed called when a call has arrived or a stream has ended
   */
  constructor(worker, limits, log, changed) {
    this.#worker = worker;
    this.#limits = limits;
    this.#log = log;
    this.changed = changed;
    this.#judge = new Judge(worker, limits, log);
    this.#inFlight = new InFlight(limits.inFlight);
    this.#description = describedWorker(worker);
    /** When the latest unary call arrived, on `performance.now()`'s clock. */
    this.lastCall = 0;
  }

  /** Whether a stream is open. */
  get hasStreams() {
    return this.#streams.size > 0;
  }

  /** End each stream when it has no open calls and receives no more. */
  stop() {
    this.#isStopping = true;
    for (const stream of this.#streams) stream.stop();
  }

  /**
   * The policies, their versions and claims.
   *
   * @param {UnaryCall} call
   * @param {Answer} answer
   */
  describe(call, answer) {
    const request = this.#read(DESCRIBE_REQUEST, call, answer);
    if (request === undefined) return;
    this.#log.info(`described to gateway ${JSON.stringify(request.gatewayVersion)} at ${call.getPeer()}`);
    answer(null, this.#description);
  }

  /**
   * Validate settings of a policy.
   *
   * @param {UnaryCall} call
   * @param {Answer} answer
   */
  validateSettings(call, answer) {
    const request = this.#read(VALIDATE_REQUEST, call, answer);
    if (request === undefined) return;
    answer(null, encodedMessage(VALIDATE_RESPONSE, this.#findings(request.policy, request.settings)));
  }

  /**
   * One call. gRPC emits `cancelled` after the deadline and when the client cancels.
   *
   * @param {UnaryCall} call
   * @param {Answer} answer
   */
  review(call, answer) {
    const request = this.#read(REVIEW_REQUEST, call, answer);
    if (request === undefined) return;
    if (!request.call) {
      answer({ code: status.INVALID_ARGUMENT, details: 'a ReviewRequest without a call' });
      return;
    }
    if (!this.#inFlight.enter()) {
      answer({ code: status.RESOURCE_EXHAUSTED, details: this.#inFlight.refusal() });
      return;
    }
    const cancellation = new Cancellation();
    request.call.traceparent = sent(call.metadata, 'traceparent');
    request.call.tracestate = sent(call.metadata, 'tracestate');
    // "PolicyCall.document_index and PolicyCall.timeout are not used here."
    const source = request.call.documentSource === 'document' ? new Source(request.call.document) : undefined;
    const begun = this.#judge.begin(request.call, source, cancellation);
    if (Buffer.isBuffer(begun)) {
      this.#inFlight.leave();
      answer(null, encodedResponse(begun));
      return;
    }
    call.once('cancelled', () => cancellation.cancel('the gateway no longer waits'));
    begun.then(outcome => {
      this.#inFlight.leave();
      if (!cancellation.isCancelled) answer(null, encodedResponse(outcome));
      this.changed();
    });
  }

  /**
   * A stream of calls.
   *
   * @param {import('@grpc/grpc-js').ServerDuplexStream<Buffer, Buffer>} call
   */
  reviewStream(call) {
    const served = { judge: this.#judge, inFlight: this.#inFlight, limits: this.#limits, log: this.#log };
    const stream = new ReviewStream(call, served);
    this.#streams.add(stream);
    stream.start(() => {
      this.#streams.delete(stream);
      this.changed();
    });
    if (this.#isStopping) stream.stop();
  }

  /**
   * @param {string} name
   * @param {Buffer} settings
   * @returns {{ errors?: object[], warnings?: readonly string[] }}
   */
  #findings(name, settings) {
    const policy = this.#worker.policies.get(name);
    if (policy === undefined) {
      return { errors: [{ message: `the worker holds no policy ${JSON.stringify(name)}` }] };
    }
    try {
      return { warnings: policy.settings.read(settings).warnings };
    } catch (error) {
      const isInvalid = error instanceof InvalidSettingsError;
      if (!isInvalid || error.cause !== undefined) {
        const thrown = isInvalid ? error.cause : error;
        this.#log.error(`the check of the settings of policy ${name} threw`, { policy: name, error: thrown });
      }
      const message = "The settings could not be checked; see the worker's log";
      return { errors: isInvalid ? [...error.errors] : [{ message }] };
    }
  }

  /**
   * Decode a request; one that cannot be decoded ends the call.
   *
   * @param {import('protobufjs').Type} type
   * @param {UnaryCall} call
   * @param {Answer} answer
   */
  #read(type, call, answer) {
    this.lastCall = performance.now();
    this.changed();
    try {
      return decoded(type, call.request);
    } catch (error) {
      answer({ code: status.INVALID_ARGUMENT, details: `the request cannot be read: ${reasonOf(error)}` });
      return undefined;
    }
  }
}

/**
 * The response of `Describe`, encoded once: it must be cheap, and must not fail while the worker can judge.
 *
 * @param {import('./worker.js').ServedWorker} worker
 * @returns {Buffer}
 */
function describedWorker({ name, version, policies }) {
  const described = [...policies.values()].map(policy => policy.descriptionMessage());
  return encodedMessage(DESCRIBE_RESPONSE, { worker: name, version, policies: described });
}

/**
 * A header of the trace context; `''` without one.
 *
 * @param {import('@grpc/grpc-js').Metadata} metadata
 * @param {string} name
 */
function sent(metadata, name) {
  const [value] = metadata.get(name);
  return typeof value === 'string' ? value : '';
}
