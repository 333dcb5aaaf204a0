/**
 * The contract's messages, from the copy of `proto/` in the package.
 *
 * Outcomes are encoded once, where they are made: their size shows whether they fit a message, and a batch is made of
 * their bytes. An embedded message is its bytes after a tag and a length, so the result is the same as encoding the
 * whole.
 */

import { isUtf8 } from 'node:buffer';
import { fileURLToPath } from 'node:url';
import protobuf from 'protobufjs';

/** @typedef {{ low: number, high: number, unsigned: boolean }} Uint64 as protobufjs gives an id */
/** @typedef {{ seconds: number | Uint64, nanos: number }} Duration */

/**
 * A call of one policy.
 *
 * @typedef {object} PolicyCall
 * @property {string} policy
 * @property {number} phase
 * @property {Buffer} settings
 * @property {Buffer} document
 * @property {number} documentIndex
 * @property {'document' | 'documentIndex' | undefined} documentSource
 * @property {string} uid
 * @property {string} traceparent
 * @property {string} tracestate
 * @property {Duration | null} timeout
 */

/** @typedef {{ id: Uint64, call: PolicyCall, item: 'call' | 'cancel' | undefined }} RequestItem */
/** @typedef {{ documents: Buffer[], items: RequestItem[] }} StreamRequest */

const root = new protobuf.Root();
const folder = new URL('../proto/', import.meta.url);
root.loadSync(
  ['admission/worker/v1/worker.proto', 'grpc/health/v1/health.proto'].map(name => fileURLToPath(new URL(name, folder))),
);
const types = root.lookup('admission.worker.v1');

/**
 * A message type of the contract or of gRPC's health service.
 *
 * @param {string} name such as `Outcome`, or its full name
 * @returns {protobuf.Type}
 */
export function typeNamed(name) {
  return name.includes('.') ? root.lookupType(name) : /** @type {protobuf.Namespace} */ (types).lookupType(name);
}

/** Kubernetes' two admission phases, with the contract's numbers. */
export const PHASES = Object.freeze({ mutating: 1, validating: 2 });

/** Why a policy could not judge, with the contract's numbers. */
export const REASONS = Object.freeze({ unspecified: 0, invalidSettings: 1, unknownPolicy: 2 });

const OUTCOME = typeNamed('Outcome');

/** The tag of field 1 of wire type 2: `items` of a ReviewStreamResponse and `outcome` of a ReviewResponse. */
const FIRST_BYTES = (1 << 3) | 2;

/** The tag of field 2 of wire type 2: `outcome` of a ResponseItem. */
const SECOND_BYTES = (2 << 3) | 2;

/** The tag of field 1 of wire type 0: `id` of a ResponseItem. */
const FIRST_VARINT = 1 << 3;

/**
 * Bytes of a message besides one outcome: an id of up to 10 bytes, and tags and lengths of up to 6 bytes each.
 */
export const ENVELOPE_BYTES = 64;

/**
 * Reads strings as strictly as other protobuf libraries: protobufjs accepts a truncated string as a shorter one, and
 * replaces bytes that are not UTF-8.
 */
class StrictReader extends protobuf.BufferReader {
  /** @override */
  string() {
    const text = /** @type {Buffer} */ (this.bytes());
    if (!isUtf8(text)) throw new RangeError('a text is no UTF-8');
    return text.toString();
  }
}

/**
 * Decode a message.
 *
 * @param {protobuf.Type} type
 * @param {Buffer} bytes
 * @returns {any}
 * @throws {Error} the bytes are not such a message
 */
export function decoded(type, bytes) {
  return type.decode(new StrictReader(bytes));
}

/**
 * Encode a message.
 *
 * @param {protobuf.Type} type
 * @param {object} message its set fields
 * @returns {Buffer}
 */
export function encodedMessage(type, message) {
  return asBuffer(type.encode(message).finish());
}

/**
 * Encode an Outcome.
 *
 * @param {object} outcome its set fields
 * @returns {Buffer}
 */
export function encodedOutcome(outcome) {
  return encodedMessage(OUTCOME, outcome);
}

/**
 * Encode a ReviewResponse with an encoded outcome.
 *
 * @param {Buffer} outcome
 * @returns {Buffer}
 */
export function encodedResponse(outcome) {
  return asBuffer(protobuf.Writer.create().uint32(FIRST_BYTES).bytes(outcome).finish());
}

/**
 * Encode a ReviewStreamResponse with encoded outcomes.
 *
 * @param {readonly { id: Uint64, outcome: Buffer }[]} items
 * @returns {Buffer}
 */
export function encodedBatch(items) {
  const writer = protobuf.Writer.create();
  for (const { id, outcome } of items) {
    writer
      .uint32(FIRST_BYTES)
      .fork()
      .uint32(FIRST_VARINT)
      .uint64(/** @type {any} */ (id));
    writer.uint32(SECOND_BYTES).bytes(outcome).ldelim();
  }
  return asBuffer(writer.finish());
}

/**
 * A Duration in seconds.
 *
 * @param {Duration} duration
 * @returns {number}
 */
export function secondsOf({ seconds, nanos }) {
  const whole = typeof seconds === 'number' ? seconds : seconds.high * 2 ** 32 + (seconds.low >>> 0);
  return whole + nanos / 1e9;
}

/**
 * An id as a key of a Map: equal for equal ids, a number for all ids below 2^32.
 *
 * @param {Uint64} id
 * @returns {number | string}
 */
export function keyOf({ low, high }) {
  return high === 0 ? low >>> 0 : `${high >>> 0}:${low >>> 0}`;
}

/**
 * @param {Uint8Array} bytes
 * @returns {Buffer}
 */
function asBuffer(bytes) {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
