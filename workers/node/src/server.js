/**
 * A worker on its address, and an orderly end.
 *
 * To stop is to lame-duck first: health says NOT_SERVING; whatever still comes is answered, since the gateway needs a
 * moment to hear of it; streams end when their gateway has half-closed, or nothing has come for half a second; then
 * nothing more is taken, and open calls are finished. What is still open after the grace period is cancelled.
 *
 * The sockets are ours and their connections are handed to gRPC, so that a taken address is one line, certificates are
 * exchanged while serving, and a peer that does not speak HTTP/2 is shown the door.
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
 * How to serve.
 *
 * @typedef {object} ServeOptions
 * @property {Partial<import('./limits.js').Limits>} [limits]
 * @property {import('./certificates.js').TlsFiles} [tls] default: without TLS
 * @property {Log} [log] default: everything from `info` on standard error
 * @property {boolean} [conformance] whether the probe policies are served as well (`probes.js`); default false
 */

/** @typedef {(bytes: Buffer) => Buffer} Bytes */

/** Messages travel as bytes through gRPC's library: we refuse an unreadable one in our own words. @type {Bytes} */
const asTheyAre = bytes => bytes;

/**
 * Milliseconds. A gateway that says nothing for a minute is pinged, and let go of when it does not answer within 20 s:
 * one whose machine has died would else keep its connection, its streams and what it had asked for ever.
 */
const QUIET_PING = 60_000;
const PONG = 20_000;

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
   * @param {import('./worker.js').Held} worker
   * @param {ServeOptions} options
   */
  constructor(worker, { limits, log = new Log() }) {
    this.#limits = limitsOf(limits);
    this.#log = log;
    this.#service = new Service(worker, this.#limits, log, () => this.#changed());
    this.#grpc = new grpc.Server({
      'grpc.max_receive_message_length': this.#limits.messageBytes,
      'grpc.max_send_message_length': this.#limits.messageBytes,
      'grpc.keepalive_time_ms': QUIET_PING,
      'grpc.keepalive_timeout_ms': PONG,
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
    /** For a gRPC client: with the port that was found where 0 was asked for. */
    this.address = '';
    /** The names of all that is served. */
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
    this.#listener.on('error', error => this.#log.error(`the socket that listens: ${error.message}`));
    this.#listener.on('tlsClientError', error => this.#log.info(`a client was refused: ${error.message}`));
    this.#certificates?.watch(options => {
      /** @type {import('node:tls').Server} */ (server).setSecureContext(options);
    });
    this.address = addressText(found);
  }

  /**
   * Stop in order: resolved when everything has ended. A second call waits for the same end.
   *
   * @returns {Promise<void>}
   */
  close() {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  async #stop() {
    const patience = new Patience(this.#limits.gracePeriod * 1000);
    this.#health.stop();
    this.#service.stop();
    await patience.upTo(this.#isQuiet());
    this.#certificates?.close();
    this.#listener?.close();
    await patience.upTo(new Promise(resolve => this.#grpc.tryShutdown(resolve)));
    if (patience.isOver)
      this.#log.warning(`the grace period of ${this.#limits.gracePeriod} s is over: the rest is cancelled`);
    patience.end();
    this.#grpc.forceShutdown();
    for (const connection of this.#connections) connection.destroy();
  }

  /** Resolved when no stream is open and no call has come for a while; or when nobody is connected. */
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
    // TLS without the protocol's name is nobody who speaks gRPC: "gRPC ... MUST use ALPN".
    if ('alpnProtocol' in socket && socket.alpnProtocol !== 'h2') {
      socket.destroy();
      return;
    }
    this.#connections.add(socket);
    socket.on('error', error => this.#log.debug(`a connection has failed: ${error.message}`));
    socket.once('close', () => {
      this.#connections.delete(socket);
      this.#changed();
    });
    this.#injector.injectConnection(socket);
  }
}

/** A time that several waits share. */
class Patience {
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
   * Wait for something, as long as there is time.
   *
   * @param {Promise<unknown>} what
   */
  async upTo(what) {
    if (!this.isOver) await Promise.race([what, this.#over]);
  }

  /** Nobody waits any more. */
  end() {
    clearTimeout(this.#timer);
  }
}

/**
 * A service whose messages are bytes.
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
