/**
 * Read flags and variables.
 *
 * @param {readonly string[]} args
 * @param {Readonly<Record<string, string | undefined>>} environment
 * @returns {Record<string, any>} values by flag name, and `help`
 * @throws {UsageError}
 */
export function readFlags(args: readonly string[], environment: Readonly<Record<string, string | undefined>>): Record<string, any>;
/**
 * The help: a line for each flag.
 *
 * @returns {string}
 */
export function flagsHelp(): string;
/** An error of the operator: a wrong flag or variable. The message is one line. */
export class UsageError extends Error {
}
/** @type {Readonly<Record<string, Flag>>} */
export const FLAGS: Readonly<Record<string, Flag>>;
export type Flag = {
    /**
     * the value's name in the help; `''`: the flag has no value
     */
    value: string;
    default: any;
    help: string;
    /**
     * parses the value
     */
    read: (text: string) => any;
};
