/** grpc.health.v1: the status of the worker and of its service. A watch ends after it has sent NOT_SERVING. */

import { status } from '@grpc/grpc-js';
import { decoded, encodedMessage, typeNamed } from './messages.js';

/** The services with a health status: the server as a whole, and the worker's service. */
const NAMES = ['', 'admission.worker.v1.Worker'];

const REQUEST = typeNamed('grpc.health.v1.HealthCheckRequest');
const RESPONSE = typeNamed('grpc.health.v1.HealthCheckResponse');

/** The numbers of HealthCheckResponse.ServingStatus. */
const SERVING = encodedMessage(RESPONSE, { status: 1 });
const NOT_SERVING = encodedMessage(RESPONSE, { status: 2 });
const UNKNOWN = encodedMessage(RESPONSE, { status: 3 });

/** Serves Check and Watch. */
export class Health {
  #isStopping = false;
  /** @type {Set<() => void>} */
  #watches = new Set();

  /** Report NOT_SERVING from now on, and to all watches. */
  stop() {
    this.#isStopping = true;
    for (const end of this.#watches) end();
    this.#watches.clear();
  }

  /**
   * The current status. "If the service name is not registered, the server returns a NOT_FOUND GRPC status."
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
   * The current status, and its only change, to NOT_SERVING.
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
    const end = () => {
      call.write(isKnown ? NOT_SERVING : UNKNOWN);
      call.end();
    };
    if (this.#isStopping) {
      end();
      return;
    }
    call.write(isKnown ? SERVING : UNKNOWN);
    this.#watches.add(end);
    call.once('cancelled', () => this.#watches.delete(end));
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
