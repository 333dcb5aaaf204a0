/** One registered policy. */
export class Policy {
    /**
     * @param {string} name a DNS-1123 label
     * @param {Phase} phase the phase in which it can be used
     * @param {unknown} given the author's options
     * @param {unknown} judge the author's function
     * @throws {RegistrationError} a name that is no label, a wrong option, or no function
     */
    constructor(name: string, phase: Phase, given: unknown, judge: unknown);
    name: string;
    phase: Phase;
    judge: PolicyFunction<any, any>;
    settings: SettingsType;
    inputs: import("./claims.js").Claim;
    writes: import("./claims.js").Claim;
    version: string;
    description: string;
    /** What `Describe` says about it. */
    descriptionMessage(): {
        name: string;
        version: string;
        phases: (1 | 2)[];
        inputs: object | undefined;
        writes: object | undefined;
        settingsSchema: Buffer<ArrayBuffer>;
        description: string;
    };
}
/**
 * Kubernetes' two admission phases
 */
export type Phase = "mutating" | "validating";
/**
 * nothing is `allow()`
 */
export type Returned = import("./answers.js").Answer | null | undefined | void;
/**
 * A policy's function: it judges a request, at once or in time.
 */
export type PolicyFunction<S, T> = (request: import("./request.js").Request<T>, settings: S) => Returned | PromiseLike<Returned>;
/**
 * What can be said of a policy besides its name and its function.
 */
export type ValidatingOptions<S = any> = {
    /**
     * a JSON Schema (2020-12) of its settings; default: it has none,
     * and accepts `{}`. A `default` in it is filled in
     */
    settings?: Readonly<Record<string, unknown>> | undefined;
    /**
     * a further check of settings that satisfy the schema: gives what is wrong (SettingsError or a text), and what to
     * warn about (SettingsWarning)
     */
    validate?: ((settings: S) => Iterable<import("./settings.js").Finding> | import("./settings.js").Finding | null | undefined | void) | undefined;
    /**
     * which parts of the AdmissionRequest
     * it reads, as JSON Pointers such as `/object/metadata/labels` (a segment `*` is every element or member), or
     * EVERYTHING; default: not said. The policy is sent no more than that, and verdicts are cached by it
     */
    inputs?: readonly string[] | typeof import("./claims.js").EVERYTHING | undefined;
    /**
     * its own, where it changes more rarely than the worker's
     */
    version?: string | undefined;
    /**
     * for the operator, one or two sentences
     */
    description?: string | undefined;
};
/**
 * `writes`: which parts of the object it may change, as JSON Pointers over the object such as
 *   `/metadata/labels`, or EVERYTHING; default: not said
 */
export type MutatingOptions<S = any> = ValidatingOptions<S> & {
    writes?: readonly string[] | typeof import("./claims.js").EVERYTHING;
};
import { SettingsType } from './settings.js';
