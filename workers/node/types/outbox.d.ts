/** @typedef {import('./messages.js').Uint64} Uint64 */
export class Outbox {
    /**
     * @param {Readonly<import('./limits.js').Limits>} limits of a batch, and of unwritten outcomes
     * @param {(batch: Buffer, done: () => void) => void} write sends one message, and calls `done` when it is written
     * @param {() => void} written called after each written message
     */
    constructor(limits: Readonly<import("./limits.js").Limits>, write: (batch: Buffer, done: () => void) => void, written: () => void);
    written: () => void;
    /** Whether everything has been written. */
    get isEmpty(): boolean;
    /** Whether unwritten outcomes exceed the limits, so that the stream must stop reading. */
    get isFull(): boolean;
    /**
     * @param {number | string} key of the id
     * @returns {boolean} whether its outcome is not yet written
     */
    has(key: number | string): boolean;
    /**
     * @param {number | string} key
     * @param {Uint64} id
     * @param {Buffer} outcome encoded
     */
    add(key: number | string, id: Uint64, outcome: Buffer): void;
    /** @param {number | string} key of a cancelled call */
    remove(key: number | string): void;
    /** Discard everything: the stream has ended. */
    close(): void;
    #private;
}
export type Uint64 = import("./messages.js").Uint64;
