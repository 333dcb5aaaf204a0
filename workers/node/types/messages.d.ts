/**
 * A message type of the contract or of gRPC's health service.
 *
 * @param {string} name such as `Outcome`, or its full name
 * @returns {protobuf.Type}
 */
export function typeNamed(name: string): protobuf.Type;
/**
 * A message out of its bytes.
 *
 * @param {protobuf.Type} type
 * @param {Buffer} bytes
 * @returns {any}
 * @throws {Error} they cannot be read
 */
export function decoded(type: protobuf.Type, bytes: Buffer): any;
/**
 * A message as bytes.
 *
 * @param {protobuf.Type} type
 * @param {object} message its set fields
 * @returns {Buffer}
 */
export function encodedMessage(type: protobuf.Type, message: object): Buffer;
/**
 * An Outcome as bytes.
 *
 * @param {object} outcome its set fields
 * @returns {Buffer}
 */
export function encodedOutcome(outcome: object): Buffer;
/**
 * A ReviewResponse with an encoded outcome.
 *
 * @param {Buffer} outcome
 * @returns {Buffer}
 */
export function encodedResponse(outcome: Buffer): Buffer;
/**
 * A ReviewStreamResponse with encoded outcomes.
 *
 * @param {readonly { id: Uint64, outcome: Buffer }[]} items
 * @returns {Buffer}
 */
export function encodedBatch(items: readonly {
    id: Uint64;
    outcome: Buffer;
}[]): Buffer;
/**
 * Seconds of a Duration.
 *
 * @param {Duration} duration
 * @returns {number}
 */
export function secondsOf({ seconds, nanos }: Duration): number;
/**
 * An id as a key of a Map: the same for equal ids, a number for all that a gateway reaches.
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
 * What a message needs beside one outcome: an id of up to 10 bytes, and tags and lengths of up to 6 bytes each.
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
 * One question to one policy.
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
