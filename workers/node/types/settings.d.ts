/** What a policy's settings must be. */
export class SettingsType {
    /**
     * @param {unknown} schema undefined: the policy has no settings
     * @param {unknown} validate the author's own check; undefined: there is none
     * @param {string} what whose settings, for errors
     * @throws {RegistrationError} the schema is none, or not of an object; the check is no plain function
     */
    constructor(schema: unknown, validate: unknown, what: string);
    schema: Readonly<Record<string, unknown>> | Readonly<{
        type: "object";
        properties: {};
        additionalProperties: false;
    }>;
    /** Whether there are any. */
    isNone: boolean;
    /** The schema as JSON text. */
    schemaText(): string;
    /**
     * Settings out of their JSON text.
     *
     * @param {Buffer} raw one JSON object in UTF-8
     * @returns {{ settings: any, warnings: readonly string[] }} the settings, frozen, and what to warn about
     * @throws {InvalidSettingsError} all that is wrong with them
     */
    read(raw: Buffer): {
        settings: any;
        warnings: readonly string[];
    };
    #private;
}
/**
 * what is wrong (a text: as a whole), or worth a warning
 */
export type Finding = SettingsError | SettingsWarning | string;
/**
 * an author's own check
 */
export type Validate = (settings: any) => Iterable<Finding> | Finding | null | undefined | void;
/**
 * a JSON Schema (2020-12) of an object
 */
export type Schema = Readonly<Record<string, unknown>>;
import { SettingsError } from './errors.js';
import { SettingsWarning } from './errors.js';
