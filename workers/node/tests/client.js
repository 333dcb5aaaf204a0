/** A gateway's client of a worker, over a real connection: the four RPCs and health. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import grpc from '@grpc/grpc-js';
import { typeNamed } from '../src/messages.js';

/** Milliseconds after which a test fails; a passing one takes a fraction. */
export const PATIENCE = 30_000;

export const MUTATING = 1;
export const VALIDATING = 2;

const HEALTH = 'grpc.health.v1';

/** @param {string} name of a message */
const reading = name => (/** @type {Buffer} */ bytes) => {
  const type = typeNamed(name);
  return type.toObject(type.decode(bytes), { longs: String, oneofs: true, defaults: false });
};

/** @param {string} name */
const writing = name => (/** @type {any} */ message) =>
  Buffer.isBuffer(message)
    ? message
    : Buffer.from(typeNamed(name).encode(typeNamed(name).fromObject(message)).finish());

/**
 * JSON text in bytes; bytes stay as they are.
 *
 * @param {unknown} value
 */
export function json(value) {
  return Buffer.isBuffer(value) ? value : Buffer.from(JSON.stringify(value));
}

/**
 * A PolicyCall. `settings` and `document` are bytes or JSON values, `timeout` is in seconds.
 *
 * @param {string} policy
 * @param {any} [given]
 */
export function policyCall(
  policy,
  { phase = VALIDATING, settings = {}, document = {}, index, timeout, ...fields } = {},
) {
  const made = { policy, phase, settings: json(settings), ...fields };
  if (index !== undefined) made.documentIndex = index;
  else if (document !== null) made.document = json(document);
  if (timeout !== undefined) {
    made.timeout = { seconds: Math.floor(timeout), nanos: Math.round((timeout % 1) * 1e9) };
  }
  return made;
}

/**
 * A message of the stream: the calls under the ids `first`, `first` + 1, ..., then the cancels.
 *
 * @param {any[]} calls
 * @param {{ first?: number, cancel?: number[], documents?: unknown[] }} [given]
 */
export function batch(calls, { first = 1, cancel = [], documents = [] } = {}) {
  return {
    documents: documents.map(json),
    items: [...calls.map((call, index) => ({ id: first + index, call })), ...cancel.map(id => ({ id, cancel: {} }))],
  };
}

/** One connection. */
export class Client {
  #channel;

  /**
   * @param {string} address
   * @param {grpc.ChannelCredentials} [credentials]
   * @param {grpc.ClientOptions} [options]
   */
  constructor(address, credentials = grpc.credentials.createInsecure(), options = {}) {
    this.#channel = new grpc.Client(address, credentials, {
      'grpc.max_receive_message_length': -1,
      'grpc.max_send_message_length': -1,
      'grpc.use_local_subchannel_pool': 1,
      ...options,
    });
  }

  close() {
    this.#channel.close();
  }

  /**
   * A unary call.
   *
   * @param {string} service
   * @param {string} method
   * @param {string} request its type
   * @param {string} response its type
   * @param {any} message or bytes
   * @param {{ patience?: number, metadata?: Record<string, string>, signal?: AbortSignal }} [given]
   * @returns {Promise<any>}
   */
  call(service, method, request, response, message, { patience = PATIENCE, metadata = {}, signal } = {}) {
    const sent = new grpc.Metadata();
    for (const [key, value] of Object.entries(metadata)) sent.set(key, value);
    return new Promise((resolve, reject) => {
      const call = this.#channel.makeUnaryRequest(
        `/${service}/${method}`,
        writing(request),
        reading(response),
        message,
        sent,
        { deadline: Date.now() + patience },
        (error, value) => (error ? reject(error) : resolve(value)),
      );
      signal?.addEventListener('abort', () => call.cancel());
    });
  }

  /** @param {string} method @param {any} message @param {any} [given] */
  worker(method, message, given) {
    return this.call('admission.worker.v1.Worker', method, `${method}Request`, `${method}Response`, message, given);
  }

  describe() {
    return this.worker('Describe', { gatewayVersion: '0.1.0' });
  }

  /** @param {string} policy @param {unknown} settings */
  async validate(policy, settings) {
    const { errors = [], warnings = [] } = await this.worker('ValidateSettings', { policy, settings: json(settings) });
    return {
      errors: errors.map((/** @type {any} */ { pointer = '', message }) => [pointer, message]),
      warnings,
    };
  }

  /** @param {any} call a PolicyCall @param {any} [given] @returns {Promise<any>} its Outcome */
  async review(call, given) {
    return (await this.worker('Review', { call }, given)).outcome;
  }

  /** @param {string} [service] */
  async health(service = '') {
    const type = `${HEALTH}.HealthCheckRequest`;
    return (await this.call(`${HEALTH}.Health`, 'Check', type, `${HEALTH}.HealthCheckResponse`, { service })).status;
  }

  /** @param {string} [service] */
  watch(service = '') {
    return this.#channel.makeServerStreamRequest(
      `/${HEALTH}.Health/Watch`,
      writing(`${HEALTH}.HealthCheckRequest`),
      reading(`${HEALTH}.HealthCheckResponse`),
      { service },
    );
  }

  stream() {
    return new Stream(
      this.#channel.makeBidiStreamRequest(
        '/admission.worker.v1.Worker/ReviewStream',
        writing('ReviewStreamRequest'),
        reading('ReviewStreamResponse'),
      ),
    );
  }
}

/** One ReviewStream. */
export class Stream {
  /** @param {grpc.ClientDuplexStream<any, any>} call */
  constructor(call) {
    this.call = call;
    /** The received outcomes, by id. @type {Record<string, any>} */
    this.outcomes = {};
    /** The ids of each received message. @type {string[][]} */
    this.messages = [];
    /** The final status. @type {Promise<grpc.StatusObject>} */
    this.ended = new Promise(resolve => call.once('status', resolve));
    call.on('error', () => {});
    call.on('data', ({ items }) => {
      for (const { id = '0', outcome } of items) {
        assert.ok(!(id in this.outcomes), `a second outcome of ${id}`);
        this.outcomes[id] = outcome;
      }
      this.messages.push(items.map((/** @type {any} */ { id = '0' }) => id));
    });
  }

  /** @param {any} message */
  send(message) {
    this.call.write(message);
    return this;
  }

  /** The outcomes, when at least `count` have arrived. @param {number} count */
  async until(count) {
    const signal = AbortSignal.timeout(PATIENCE);
    while (Object.keys(this.outcomes).length < count) {
      const ended = await Promise.race([once(this.call, 'data', { signal }).then(() => undefined), this.ended]);
      const received = Object.keys(this.outcomes).length;
      assert.ok(!ended || received >= count, `ended with ${ended?.details} after ${received} of ${count} outcomes`);
    }
    return this.outcomes;
  }

  /** Half-close the stream; all outcomes when it has ended. */
  async rest() {
    this.call.end();
    const { code, details } = await this.ended;
    assert.equal(code, grpc.status.OK, details);
    return this.outcomes;
  }
}
