/** grpc.health.v1: the worker's state, overall and of its service. A watch ends once it has been told NOT_SERVING. */

import { status } from '@grpc/grpc-js';
import { decoded, encodedMessage, typeNamed } from './messages.js';

/** The services whose health is known: the overall one, and ours. */
const NAMES = ['', 'admission.worker.v1.Worker'];

const REQUEST = typeNamed('grpc.health.v1.HealthCheckRequest');
const RESPONSE = typeNamed('grpc.health.v1.HealthCheckResponse');

/** The numbers of HealthCheckResponse.ServingStatus. */
const SERVING = encodedMessage(RESPONSE, { status: 1 });
const NOT_SERVING = encodedMessage(RESPONSE, { status: 2 });
const UNKNOWN = encodedMessage(RESPONSE, { status: 3 });

/** Answers Check and Watch. */
export class Health {
  #isStopping = false;
  /** @type {Set<() => void>} */
  #watches = new Set();

  /** Say NOT_SERVING from now on, to those who watch as well. */
  stop() {
    this.#isStopping = true;
    for (const told of this.#watches) told();
    this.#watches.clear();
  }

  /**
   * The state now. "If the service name is not registered, the server returns a NOT_FOUND GRPC status."
   *
   * @param {import('@grpc/grpc-js').ServerUnaryCall<Buffer, Buffer>} call
   * @param {import('@grpc/grpc-js').sendUnaryData<Buffer>} answer
   */
  check(call, answer) {
    const service = serviceOf(call.request);
    if (service === undefined) answer({ code: status.INVALID_ARGUMENT, details: 'not a HealthCheckRequest' });
    else if (NAMES.includes(service)) answer(null, this.#isStopping ? NOT_SERVING : SERVING);
    else answer({ code: status.NOT_FOUND, details: `unknown service ${JSON.stringify(service)}` });
  }

  /**
   * The state now, and whenever it changes: once.
   *
   * @param {import('@grpc/grpc-js').ServerWritableStream<Buffer, Buffer>} call
   */
  watch(call) {
    const service = serviceOf(call.request);
    if (service === undefined) {
      call.emit('error', { code: status.INVALID_ARGUMENT, details: 'not a HealthCheckRequest' });
      return;
    }
    const isKnown = NAMES.includes(service);
    const told = () => {
      call.write(isKnown ? NOT_SERVING : UNKNOWN);
      call.end();
    };
    if (this.#isStopping) {
      told();
      return;
    }
    call.write(isKnown ? SERVING : UNKNOWN);
    this.#watches.add(told);
    call.once('cancelled', () => this.#watches.delete(told));
  }
}

/**
 * @param {Buffer} received
 * @returns {string | undefined} undefined: it cannot be read
 */
function serviceOf(received) {
  try {
    return decoded(REQUEST, received).service;
  } catch {
    return undefined;
  }
}
