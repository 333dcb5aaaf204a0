/**
 * Store number texts and member order for every array and object of a parsed value.
 *
 * @param {unknown} value the result of `JSON.parse(json)`, unchanged
 * @param {string} json valid JSON text
 * @param {{ order?: boolean }} [wanted] whether to store the order of members
 * @returns {boolean} whether anything was stored
 */
export function remember(value: unknown, json: string, { order }?: {
    order?: boolean;
}): boolean;
/**
 * Store a number's text for a container.
 *
 * @param {object} container which holds the number
 * @param {string | number} place the member's name or the element's index
 * @param {Written} written the number and the text that was read
 */
export function rememberNumber(container: object, place: string | number, written: Written): void;
/**
 * What is stored of a container.
 *
 * @param {object} container
 * @returns {Memory | undefined}
 */
export function memoryOf(container: object): Memory | undefined;
/**
 * The text of a number that was read; undefined: the value is not a number, was changed, or JavaScript prints the same.
 *
 * @param {Memory | undefined} memory of the container
 * @param {string | number} place
 * @param {unknown} value the current value
 * @returns {string | undefined}
 */
export function writtenNumber(memory: Memory | undefined, place: string | number, value: unknown): string | undefined;
/**
 * The members of an object of the settings, in the order of the text.
 *
 * Documents have JavaScript's order, since nothing in Kubernetes depends on the order of members.
 *
 * @template T
 * @param {Readonly<Record<string, T>>} object such as `settings.labels`
 * @returns {[string, T][]}
 */
export function entries<T>(object: Readonly<Record<string, T>>): [string, T][];
/**
 * The names of an object's members: those that were read in the order of the text, then the others.
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
