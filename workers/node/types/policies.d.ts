/** One registered policy. */
export class Policy {
    /**
     * @param {string} name a DNS-1123 label
     * @param {Phase} phase in which it is called
     * @param {unknown} given the author's options
     * @param {unknown} judge the author's function
     * @throws {RegistrationError} an invalid name or option, or no function
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
    /** Its PolicyDescription in the response of `Describe`. */
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
 * A policy's function: it judges a request, and returns an answer or a promise of one.
 */
export type PolicyFunction<S, T> = (request: import("./request.js").Request<T>, settings: S) => Returned | PromiseLike<Returned>;
/**
 * Options of a policy.
 */
export type ValidatingOptions<S = any> = {
    /**
     * a JSON Schema (2020-12) of its settings; a `default` in it is
     * filled in. Default: the policy has no settings, and accepts `{}`
     */
    settings?: Readonly<Record<string, unknown>> | undefined;
    /**
     * checks settings that satisfy the schema further: returns errors (SettingsError or a text) and warnings
     * (SettingsWarning)
     */
    validate?: ((settings: S) => Iterable<import("./settings.js").Finding> | import("./settings.js").Finding | null | undefined | void) | undefined;
    /**
     * which parts of the AdmissionRequest
     * it reads, as JSON Pointers such as `/object/metadata/labels` (a segment `*` is every element or member), or
     * EVERYTHING. The policy is sent only these, and they are part of the cache key. Default: all that is granted
     */
    inputs?: readonly string[] | typeof import("./claims.js").EVERYTHING | undefined;
    /**
     * of the policy, if it changes more rarely than the worker's
     */
    version?: string | undefined;
    /**
     * for the operator, one or two sentences
     */
    description?: string | undefined;
};
/**
 * `writes`: which parts of the object it may change, as JSON Pointers over the object such as
 *   `/metadata/labels`, or EVERYTHING. Default: all that is granted
 */
export type MutatingOptions<S = any> = ValidatingOptions<S> & {
    writes?: readonly string[] | typeof import("./claims.js").EVERYTHING;
};
import { SettingsType } from './settings.js';
