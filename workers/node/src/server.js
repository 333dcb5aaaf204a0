/**
 * A served worker and its graceful shutdown.
 *
 * A stopping worker first enters lame-duck mode: health reports NOT_SERVING, and new calls are still answered, since
 * the gateway needs a moment to notice. A stream ends when its gateway half-closes it, or after half a second without a
 * message. Then the worker accepts no more calls and finishes the open ones. Calls that are still open after the grace
 * period are cancelled.
 *
 * The worker accepts connections itself and passes them to gRPC, so that an address in use is a one-line error,
 * certificates are replaced while serving, and a peer that does not speak HTTP/2 is disconnected.
 */

import grpc from '@grpc/grpc-js';
import { addressText, parseAddress } from './address.js';
import { Certificates } from './certificates.js';
import { Health } from './health.js';
import { limitsOf } from './limits.js';
import { listen } from './listening.js';
import { Log } from './logs.js';
import { Service } from './service.js';
import { QUIET } from './stream.js';

/**
 * Options of `Worker.serve`.
 *
 * @typedef {object} ServeOptions
 * @property {Partial<import('./limits.js').Limits>} [limits]
 * @property {import('./certificates.js').TlsFiles} [tls] default: without TLS
 * @property {Log} [log] default: level `info`, on standard error
 * @property {boolean} [conformance] whether to serve the probe policies too (`probes.js`); default false
 */

/** @typedef {(bytes: Buffer) => Buffer} Bytes */

/** The gRPC library passes messages as bytes, so that the worker itself rejects an invalid one. @type {Bytes} */
const asTheyAre = bytes => bytes;

/**
 * Milliseconds. The worker pings a gateway after a minute without data, and closes the connection after 20 s without a
 * reply: otherwise the connection, streams and calls of a failed machine would stay open for ever.
 */
const KEEPALIVE_TIME = 60_000;
const KEEPALIVE_TIMEOUT = 20_000;

/** A worker that is being served. */
export class Served {
  #service;
  #health = new Health();
  #grpc;
  #injector;
  #limits;
  #log;
  /** @type {import('node:net').Server | undefined} */
  #listener;
  /** @type {Certificates | undefined} */
  #certificates;
  /** @type {Set<import('node:stream').Duplex>} */
  #connections = new Set();
  /** @type {Promise<void> | undefined} */
  #stopped;
  #changed = () => {};

  /**
   * @param {import('./worker.js').ServedWorker} worker
   * @param {ServeOptions} options
   */
  constructor(worker, { limits, log = new Log() }) {
    this.#limits = limitsOf(limits);
    this.#log = log;
    this.#service = new Service(worker, this.#limits, log, () => this.#changed());
    this.#grpc = new grpc.Server({
      'grpc.max_receive_message_length': this.#limits.messageBytes,
      'grpc.max_send_message_length': this.#limits.messageBytes,
      'grpc.keepalive_time_ms': KEEPALIVE_TIME,
      'grpc.keepalive_timeout_ms': KEEPALIVE_TIMEOUT,
    });
    this.#grpc.addService(
      serviceOf('admission.worker.v1.Worker', ['Describe', 'ValidateSettings', 'Review'], ['ReviewStream']),
      {
        Describe: this.#service.describe.bind(this.#service),
        ValidateSettings: this.#service.validateSettings.bind(this.#service),
        Review: this.#service.review.bind(this.#service),
        ReviewStream: this.#service.reviewStream.bind(this.#service),
      },
    );
    this.#grpc.addService(serviceOf('grpc.health.v1.Health', ['Check'], [], ['Watch']), {
      Check: this.#health.check.bind(this.#health),
      Watch: this.#health.watch.bind(this.#health),
    });
    this.#injector = this.#grpc.createConnectionInjector(grpc.ServerCredentials.createInsecure());
    /** The target for a gRPC client; port 0 is replaced by the port that the system chose. */
    this.address = '';
    /** The names of the served policies. */
    this.policies = Object.freeze([...worker.policies.keys()]);
  }

  /**
   * @param {string} address
   * @param {import('./certificates.js').TlsFiles | undefined} files
   */
  async start(address, files) {
    const where = parseAddress(address);
    this.#certificates = files && new Certificates(files, this.#log);
    const secure = await this.#certificates?.load();
    const { server, found } = await listen(where, secure, socket => this.#connected(socket));
    this.#listener = server;
    this.#listener.on('error', error => this.#log.error(`listening socket: ${error.message}`));
    this.#listener.on('tlsClientError', error => this.#log.info(`TLS handshake failed: ${error.message}`));
    this.#certificates?.watch(options => {
      /** @type {import('node:tls').Server} */ (server).setSecureContext(options);
    });
    this.address = addressText(found);
  }

  /**
   * Stop gracefully. Resolved when the worker has stopped; a second call waits for the same stop.
   *
   * @returns {Promise<void>}
   */
  close() {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  async #stop() {
    const grace = new GracePeriod(this.#limits.gracePeriod * 1000);
    this.#health.stop();
    this.#service.stop();
    await grace.wait(this.#isQuiet());
    this.#certificates?.close();
    this.#listener?.close();
    await grace.wait(new Promise(resolve => this.#grpc.tryShutdown(resolve)));
    if (grace.isOver)
      this.#log.warning(`the grace period of ${this.#limits.gracePeriod} s is over: open calls are cancelled`);
    grace.end();
    this.#grpc.forceShutdown();
    for (const connection of this.#connections) connection.destroy();
  }

  /** Resolved when no stream is open and no call has arrived for `QUIET`, or when no client is connected. */
  async #isQuiet() {
    const stopping = performance.now();
    for (;;) {
      if (this.#connections.size === 0) return;
      const left = Math.max(stopping, this.#service.lastCall) + QUIET - performance.now();
      if (left <= 0 && !this.#service.hasStreams) return;
      await /** @type {Promise<void>} */ (
        new Promise(resolve => {
          const timer = left > 0 ? setTimeout(resolve, Math.ceil(left)) : undefined;
          this.#changed = () => {
            clearTimeout(timer);
            resolve();
          };
        })
      );
    }
  }

  /** @param {import('node:stream').Duplex} socket */
  #connected(socket) {
    // A TLS client without ALPN does not speak gRPC: "gRPC ... MUST use ALPN".
    if ('alpnProtocol' in socket && socket.alpnProtocol !== 'h2') {
      socket.destroy();
      return;
    }
    this.#connections.add(socket);
    socket.on('error', error => this.#log.debug(`connection failed: ${error.message}`));
    socket.once('close', () => {
      this.#connections.delete(socket);
      this.#changed();
    });
    this.#injector.injectConnection(socket);
  }
}

/** The time for the shutdown, shared by several waits. */
class GracePeriod {
  isOver = false;
  #timer;
  #over;

  /** @param {number} milliseconds */
  constructor(milliseconds) {
    /** @type {() => void} */
    let over = () => {};
    this.#over = /** @type {Promise<void>} */ (
      new Promise(resolve => {
        over = resolve;
      })
    );
    this.#timer = setTimeout(() => {
      this.isOver = true;
      over();
    }, milliseconds);
  }

  /**
   * Wait for a promise until the period is over.
   *
   * @param {Promise<unknown>} what
   */
  async wait(what) {
    if (!this.isOver) await Promise.race([what, this.#over]);
  }

  /** Stop the timer. */
  end() {
    clearTimeout(this.#timer);
  }
}

/**
 * The definition of a service whose messages are bytes.
 *
 * @param {string} name
 * @param {string[]} unary
 * @param {string[]} bidirectional
 * @param {string[]} [streaming] one request, many responses
 * @returns {grpc.ServiceDefinition}
 */
function serviceOf(name, unary, bidirectional, streaming = []) {
  return Object.fromEntries(
    [...unary, ...bidirectional, ...streaming].map(method => [
      method,
      {
        path: `/${name}/${method}`,
        requestStream: bidirectional.includes(method),
        responseStream: !unary.includes(method),
        requestSerialize: asTheyAre,
        requestDeserialize: asTheyAre,
        responseSerialize: asTheyAre,
        responseDeserialize: asTheyAre,
      },
    ]),
  );
}
