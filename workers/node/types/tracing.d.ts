/** @typedef {{ outcome: Buffer, verdict: 'allow' | 'deny' | 'failure' }} Judged */
/**
 * Run a policy in its span.
 *
 * @param {{ policy: string, uid: string, traceparent: string, tracestate: string }} call
 * @param {() => Judged | Promise<Judged>} run never throws or rejects
 * @returns {Judged | Promise<Judged>}
 */
export function traced({ policy, uid, traceparent, tracestate }: {
    policy: string;
    uid: string;
    traceparent: string;
    tracestate: string;
}, run: () => Judged | Promise<Judged>): Judged | Promise<Judged>;
/** The `traceparent` of the active span; `''` without one. */
export function currentTraceparent(): string;
export type Judged = {
    outcome: Buffer;
    verdict: "allow" | "deny" | "failure";
};
