/**
 * One span for each policy call, if OpenTelemetry's API is installed.
 *
 * The gateway's `traceparent` is the span's parent, and the span is active while the policy's function runs (if a
 * context manager is registered, as by OpenTelemetry's SDK for Node.js). The program sets up the exporter.
 */

import { setTimeout } from 'node:timers/promises';

/** Milliseconds that the last spans delay the exit at most: as for the gateway. */
const EXPORT_TIMEOUT = 5_000;

/** @type {typeof import('@opentelemetry/api') | undefined} */
const api = await import('@opentelemetry/api').catch(() => undefined);

/** W3C Trace Context: "version-format = trace-id "-" parent-id "-" trace-flags"; later versions may append to it. */
const TRACEPARENT =
  /^(?<version>[0-9a-f]{2})-(?<trace>[0-9a-f]{32})-(?<parent>[0-9a-f]{16})-(?<flags>[0-9a-f]{2})(?:$|-)/;

/** @typedef {{ outcome: Buffer, verdict: 'allow' | 'deny' | 'failure' }} Judged */

/**
 * Run a policy in its span.
 *
 * @param {{ policy: string, uid: string, traceparent: string, tracestate: string }} call
 * @param {() => Judged | Promise<Judged>} run never throws or rejects
 * @returns {Judged | Promise<Judged>}
 */
export function traced({ policy, uid, traceparent, tracestate }, run) {
  if (api === undefined) return run();
  const { context, trace } = api;
  const parent = parentOf(traceparent, tracestate);
  const around = parent === undefined ? context.active() : trace.setSpanContext(context.active(), parent);
  const attributes = { 'admission.policy': policy, 'admission.uid': uid };
  const span = trace
    .getTracer('admission-worker')
    .startSpan(`admission.worker/${policy}`, { kind: api.SpanKind.SERVER, attributes }, around);
  /** @param {Judged} judged */
  const ended = judged => {
    span.setAttribute('admission.verdict', judged.verdict);
    if (judged.verdict === 'failure') span.setStatus({ code: api.SpanStatusCode.ERROR });
    span.end();
    return judged;
  };
  const judged = context.with(trace.setSpan(around, span), run);
  return judged instanceof Promise ? judged.then(ended) : ended(judged);
}

/** The `traceparent` of the active span; `''` without one. */
export function currentTraceparent() {
  const current = api?.trace.getSpanContext(api.context.active());
  if (api === undefined || current === undefined || !api.isSpanContextValid(current)) return '';
  return `00-${current.traceId}-${current.spanId}-${current.traceFlags.toString(16).padStart(2, '0')}`;
}

/**
 * Export the spans that the program's OpenTelemetry SDK still holds: the process ends before their batch is due.
 *
 * @param {import('./logs.js').Log} log
 */
export async function exportSpans(log) {
  /** @type {any} */
  const global = api?.trace.getTracerProvider();
  const provider = global?.getDelegate?.() ?? global;
  if (typeof provider?.forceFlush !== 'function') return;
  const late = setTimeout(EXPORT_TIMEOUT, new Error(`not finished after ${EXPORT_TIMEOUT} ms`), { ref: false });
  try {
    await Promise.race([provider.forceFlush(), late.then(error => Promise.reject(error))]);
  } catch (error) {
    log.warning('the last spans are not exported', { error });
  }
}

/**
 * @param {string} traceparent
 * @param {string} tracestate
 */
function parentOf(traceparent, tracestate) {
  const found = TRACEPARENT.exec(traceparent)?.groups;
  if (found === undefined || found.version === 'ff') return undefined;
  const parent = {
    traceId: found.trace,
    spanId: found.parent,
    traceFlags: Number.parseInt(found.flags, 16),
    isRemote: true,
    traceState: tracestate ? api?.createTraceState(tracestate) : undefined,
  };
  return api?.isSpanContextValid(parent) ? parent : undefined;
}
