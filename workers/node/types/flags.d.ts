/**
 * What flags and variables say.
 *
 * @param {readonly string[]} args
 * @param {Readonly<Record<string, string | undefined>>} environment
 * @returns {Record<string, any>} by the flags' names, and `help`
 * @throws {UsageError}
 */
export function readFlags(args: readonly string[], environment: Readonly<Record<string, string | undefined>>): Record<string, any>;
/**
 * The help: a line for each flag.
 *
 * @returns {string}
 */
export function flagsHelp(): string;
/** The operator's fault: a wrong flag or variable. The message is one line. */
export class UsageError extends Error {
}
/** @type {Readonly<Record<string, Flag>>} */
export const FLAGS: Readonly<Record<string, Flag>>;
export type Flag = {
    /**
     * what stands behind it in the help; `''`: nothing
     */
    value: string;
    default: any;
    help: string;
    /**
     * what was written
     */
    read: (text: string) => any;
};
