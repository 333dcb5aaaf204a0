/**
 * Remember for every array and object of a parsed value what JavaScript forgets.
 *
 * @param {unknown} value what `JSON.parse(json)` gave, unchanged
 * @param {string} json valid JSON text
 * @param {{ order?: boolean }} [wanted] whether the order of members counts
 * @returns {boolean} whether there was anything to remember
 */
export function remember(value: unknown, json: string, { order }?: {
    order?: boolean;
}): boolean;
/**
 * Remember a number of a container as it was written elsewhere.
 *
 * @param {object} container which holds the number
 * @param {string | number} place where
 * @param {Written} written as it was read
 */
export function rememberNumber(container: object, place: string | number, written: Written): void;
/**
 * What is remembered of a container.
 *
 * @param {object} container
 * @returns {Memory | undefined}
 */
export function memoryOf(container: object): Memory | undefined;
/**
 * The text in which a member's number was read; undefined: it is none, is another one now, or needs no other text.
 *
 * @param {Memory | undefined} memory of the container
 * @param {string | number} place
 * @param {unknown} value what stands there now
 * @returns {string | undefined}
 */
export function writtenNumber(memory: Memory | undefined, place: string | number, value: unknown): string | undefined;
/**
 * The members of an object that was read, in the order of its text.
 *
 * Of settings, that is: for documents only JavaScript's own order is kept, since nothing in Kubernetes depends on it.
 *
 * @template T
 * @param {Readonly<Record<string, T>>} object such as `settings.labels`
 * @returns {[string, T][]}
 */
export function entries<T>(object: Readonly<Record<string, T>>): [string, T][];
/**
 * The names of an object's members: those remembered in the order of the text, then the others.
 *
 * @param {object} object
 * @returns {string[]}
 */
export function keysOf(object: object): string[];
/**
 * a number, and its text
 */
export type Written = {
    value: number;
    text: string;
};
/**
 * of one container
 */
export type Memory = {
    numbers: Map<string | number, Written>;
    order: string[] | undefined;
};
export type Node = {
    numbers: Map<string | number, string>;
    below: Map<string | number, Node>;
    order?: string[];
};
