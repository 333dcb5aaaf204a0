/** With OpenTelemetry, the gateway's trace continues in the policy. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { context as contextApi, SpanKind, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { deny, fail, Worker } from 'admission-worker';
import { currentTraceparent } from '../src/tracing.js';
import { policyCall, batch } from './client.js';
import { connected } from './serving.js';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const PARENT = '00f067aa0ba902b7';
const TRACEPARENT = `00-${TRACE}-${PARENT}-01`;

const exporter = new InMemorySpanExporter();
contextApi.setGlobalContextManager(new AsyncLocalStorageContextManager());
trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }));

/** @param {import('node:test').TestContext} context */
async function tracing(context) {
  const worker = new Worker('test', { version: '1' });
  worker.validating('denies', {}, async () => {
    await Promise.resolve();
    return deny(currentTraceparent());
  });
  worker.validating('fails', {}, () => fail('no'));
  exporter.reset();
  return connected(context, worker);
}

test('on Review the metadata names the parent, and the span is active while the function waits', async context => {
  const { client } = await tracing(context);
  const outcome = await client.review(policyCall('denies', { uid: 'the-uid' }), {
    metadata: { traceparent: TRACEPARENT, tracestate: 'a=1,b=2' },
  });
  const [span] = exporter.getFinishedSpans();
  assert.equal(outcome.deny.message, `00-${TRACE}-${span.spanContext().spanId}-01`);
  assert.equal(span.parentSpanContext?.spanId, PARENT);
  assert.equal(span.spanContext().traceState?.serialize(), 'a=1,b=2');
  assert.equal(span.name, 'admission.worker/denies');
  assert.equal(span.kind, SpanKind.SERVER);
  assert.deepEqual(span.attributes, {
    'admission.policy': 'denies',
    'admission.uid': 'the-uid',
    'admission.verdict': 'deny',
  });
});

test('on the stream each call has its own parent', async context => {
  const { client } = await tracing(context);
  const other = TRACE.replace('4', '5');
  const calls = [TRACEPARENT, TRACEPARENT.replace(TRACE, other)].map(traceparent =>
    policyCall('denies', { traceparent, tracestate: 'a=1' }),
  );
  const outcomes = await client.stream().send(batch(calls)).rest();
  assert.match(outcomes[1].deny.message, new RegExp(`^00-${TRACE}-`));
  assert.deepEqual(
    exporter.getFinishedSpans().map(span => span.spanContext().traceState?.serialize()),
    ['a=1', 'a=1'],
  );
  assert.match(outcomes[2].deny.message, new RegExp(`^00-${other}-`));
});

test('a failure is an error of the span', async context => {
  const { client } = await tracing(context);
  await client.review(policyCall('fails'));
  const [span] = exporter.getFinishedSpans();
  assert.equal(span.attributes['admission.verdict'], 'failure');
  assert.equal(span.status.code, 2);
});

for (const broken of ['', 'garbage', `00-${'0'.repeat(32)}-${PARENT}-01`, `ff-${TRACE}-${PARENT}-01`]) {
  test(`${JSON.stringify(broken)} is no parent`, async context => {
    const { client } = await tracing(context);
    await client.review(policyCall('denies'), { metadata: { traceparent: broken } });
    const [span] = exporter.getFinishedSpans();
    assert.equal(span.parentSpanContext, undefined);
    assert.notEqual(span.spanContext().traceId, TRACE);
  });
}
