/** The schema and the check of a policy's settings. */
export class SettingsType {
    /**
     * @param {unknown} schema undefined: the policy has no settings
     * @param {unknown} validate the author's own check, if any
     * @param {string} what names the policy in errors
     * @throws {RegistrationError} an invalid schema, or one not of an object; a check that is not a plain function
     */
    constructor(schema: unknown, validate: unknown, what: string);
    schema: Readonly<Record<string, unknown>> | Readonly<{
        type: "object";
        properties: {};
        additionalProperties: false;
    }>;
    /** Whether the policy has no settings. */
    isNone: boolean;
    /** The schema as JSON text. */
    schemaText(): string;
    /**
     * Parse and check settings.
     *
     * @param {Buffer} raw one JSON object in UTF-8
     * @returns {{ settings: any, warnings: readonly string[] }} the frozen settings, and warnings
     * @throws {InvalidSettingsError} all errors
     */
    read(raw: Buffer): {
        settings: any;
        warnings: readonly string[];
    };
    #private;
}
/**
 * an error (a text: of the settings as a whole) or a warning
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
