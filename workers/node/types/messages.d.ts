/**
 * A message type of the contract or of gRPC's health service.
 *
 * @param {string} name such as `Outcome`, or its full name
 * @returns {protobuf.Type}
 */
export function typeNamed(name: string): protobuf.Type;
/**
 * Decode a message.
 *
 * @param {protobuf.Type} type
 * @param {Buffer} bytes
 * @returns {any}
 * @throws {Error} the bytes are not such a message
 */
export function decoded(type: protobuf.Type, bytes: Buffer): any;
/**
 * Encode a message.
 *
 * @param {protobuf.Type} type
 * @param {object} message its set fields
 * @returns {Buffer}
 */
export function encodedMessage(type: protobuf.Type, message: object): Buffer;
/**
 * Encode an Outcome.
 *
 * @param {object} outcome its set fields
 * @returns {Buffer}
 */
export function encodedOutcome(outcome: object): Buffer;
/**
 * Encode a ReviewResponse with an encoded outcome.
 *
 * @param {Buffer} outcome
 * @returns {Buffer}
 */
export function encodedResponse(outcome: Buffer): Buffer;
/**
 * Encode a ReviewStreamResponse with encoded outcomes.
 *
 * @param {readonly { id: Uint64, outcome: Buffer }[]} items
 * @returns {Buffer}
 */
export function encodedBatch(items: readonly {
    id: Uint64;
    outcome: Buffer;
}[]): Buffer;
/**
 * A Duration in seconds.
 *
 * @param {Duration} duration
 * @returns {number}
 */
export function secondsOf({ seconds, nanos }: Duration): number;
/**
 * An id as a key of a Map: equal for equal ids, a number for all ids below 2^32.
 *
 * @param {Uint64} id
 * @returns {number | string}
 */
export function keyOf({ low, high }: Uint64): number | string;
/** Kubernetes' two admission phases, with the contract's numbers. */
export const PHASES: Readonly<{
    mutating: 1;
    validating: 2;
}>;
/** Why a policy could not judge, with the contract's numbers. */
export const REASONS: Readonly<{
    unspecified: 0;
    invalidSettings: 1;
    unknownPolicy: 2;
}>;
/**
 * Bytes of a message besides one outcome: an id of up to 10 bytes, and tags and lengths of up to 6 bytes each.
 */
export const ENVELOPE_BYTES: 64;
/**
 * as protobufjs gives an id
 */
export type Uint64 = {
    low: number;
    high: number;
    unsigned: boolean;
};
export type Duration = {
    seconds: number | Uint64;
    nanos: number;
};
/**
 * A call of one policy.
 */
export type PolicyCall = {
    policy: string;
    phase: number;
    settings: Buffer;
    document: Buffer;
    documentIndex: number;
    documentSource: "document" | "documentIndex" | undefined;
    uid: string;
    traceparent: string;
    tracestate: string;
    timeout: Duration | null;
};
export type RequestItem = {
    id: Uint64;
    call: PolicyCall;
    item: "call" | "cancel" | undefined;
};
export type StreamRequest = {
    documents: Buffer[];
    items: RequestItem[];
};
import protobuf from 'protobufjs';
