/** @typedef {import('./messages.js').Uint64} Uint64 */
export class Outbox {
    /**
     * @param {Readonly<import('./limits.js').Limits>} limits of a batch, and of what waits
     * @param {(batch: Buffer, done: () => void) => void} write sends one message, and says when it has been taken
     * @param {() => void} written called whenever there is room again
     */
    constructor(limits: Readonly<import("./limits.js").Limits>, write: (batch: Buffer, done: () => void) => void, written: () => void);
    written: () => void;
    /** Whether everything has been written. */
    get isEmpty(): boolean;
    /** Whether so much waits that nothing more should be taken. */
    get isFull(): boolean;
    /**
     * @param {number | string} key of the id
     * @returns {boolean} whether its outcome waits here
     */
    has(key: number | string): boolean;
    /**
     * @param {number | string} key
     * @param {Uint64} id
     * @param {Buffer} outcome encoded
     */
    add(key: number | string, id: Uint64, outcome: Buffer): void;
    /** @param {number | string} key whose outcome nobody waits for any more */
    remove(key: number | string): void;
    /** Write no more: the stream is gone. */
    close(): void;
    #private;
}
export type Uint64 = import("./messages.js").Uint64;
