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
/**
 * Export the spans that the program's OpenTelemetry SDK still holds: the process ends before their batch is due.
 *
 * @param {import('./logs.js').Log} log
 */
export function exportSpans(log: import("./logs.js").Log): Promise<void>;
export type Judged = {
    outcome: Buffer;
    verdict: "allow" | "deny" | "failure";
};
