/** A stopping worker answers all calls within its grace period. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import grpc from '@grpc/grpc-js';
import { deny, Worker } from 'admission-worker';
import { policyCall, batch } from './client.js';
import { connected, gatesOf } from './serving.js';

/** @param {import('node:test').TestContext} context @param {import('admission-worker').ServeOptions} [options] */
async function stoppable(context, options) {
  const worker = new Worker('test', { version: '1' });
  const gate = gatesOf(worker, deny);
  const { client, served, log } = await connected(context, worker, options);
  const watch = client.watch();
  watch.on('error', () => {});
  assert.deepEqual(await once(watch, 'data'), [{ status: 1 }]);
  /** Stop; returns when the watch has received NOT_SERVING. */
  const stop = async () => {
    const closed = served.close();
    assert.deepEqual(await once(watch, 'data'), [{ status: 2 }]);
    return { closed };
  };
  return { gate, client, served, log, watch, stop };
}

/** @param {string} policy @param {string} name */
const named = (policy, name) => policyCall(policy, { document: { name } });

test('a watch receives NOT_SERVING and ends', async context => {
  const { watch, stop } = await stoppable(context);
  const ended = once(watch, 'status');
  const { closed } = await stop();
  assert.equal((await ended)[0].code, grpc.status.OK);
  await closed;
});

test('open calls are answered', async context => {
  const { gate, client, stop } = await stoppable(context, { limits: { gracePeriod: 3600 } });
  const review = client.review(named('waits', 'unary'));
  const stream = client.stream().send(batch([named('waits', 'streamed')]));
  await Promise.all([gate('begun unary').opened, gate('begun streamed').opened]);
  const { closed } = await stop();
  gate('unary').open();
  gate('streamed').open();
  assert.equal((await review).deny.message, 'unary');
  assert.equal((await stream.until(1))[1].deny.message, 'streamed');
  await closed;
});

test('calls that arrive after the stop are answered, unary and streamed', async context => {
  const { gate, client, stop } = await stoppable(context, { limits: { gracePeriod: 3600 } });
  // One call stays open until all have arrived: otherwise a busy machine might stop first.
  const stream = client.stream().send(batch([named('waits', 'a')]));
  await gate('begun a').opened;
  const { closed } = await stop();
  stream.send(batch([named('plain', 'b')], { first: 2 }));
  const [{ deny: late }] = await Promise.all([client.review(named('plain', 'c')), stream.until(1)]);
  assert.equal(late.message, 'c');
  assert.equal(await client.health(), 2);
  gate('a').open();
  await stream.rest();
  await closed;
});

test('a stream that the gateway does not half-close ends when it is idle', async context => {
  const { client, stop } = await stoppable(context);
  const stream = client.stream().send(batch([named('plain', 'a')]));
  await stream.until(1);
  const { closed } = await stop();
  assert.equal((await stream.ended).code, grpc.status.OK);
  await closed;
});

test('calls that are open after the grace period are cancelled', async context => {
  const { gate, client, log, stop } = await stoppable(context, { limits: { gracePeriod: 0.2 } });
  const review = client.review(named('waits', 'a'));
  const stream = client.stream().send(batch([named('waits', 'b')]));
  await Promise.all([gate('begun a').opened, gate('begun b').opened]);
  const { closed } = await stop();
  await Promise.all([gate('cancelled a').opened, gate('cancelled b').opened, closed]);
  await assert.rejects(review);
  assert.notEqual((await stream.ended).code, grpc.status.OK);
  assert.match(log.text, /the grace period of 0\.2 s is over/);
});

test('a second close waits for the first', async context => {
  const { served } = await connected(context, new Worker('test', { version: '1' }));
  await Promise.all([served.close(), served.close()]);
});
