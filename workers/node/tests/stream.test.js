/** ReviewStream: each call is answered as soon as it is known, once, and by its own id. */

import assert from 'node:assert/strict';
import net from 'node:net';
import { test } from 'node:test';
import grpc from '@grpc/grpc-js';
import { deny, Worker } from 'admission-worker';
import { policyCall, batch, Client, MUTATING } from './client.js';
import { connected, gatesOf } from './serving.js';

/** @param {import('node:test').TestContext} context @param {import('admission-worker').ServeOptions} [options] */
async function streaming(context, options) {
  const worker = new Worker('test', { version: '1' });
  const gate = gatesOf(worker, deny);
  const { client, served, log } = await connected(context, worker, options);
  return { gate, client, served, log, stream: client.stream() };
}

/** @param {string} name @param {any} [given] */
const waits = (name, given) => policyCall('waits', { document: { name }, ...given });

/** @param {string} name @param {any} [given] */
const plain = (name, given) => policyCall('plain', { document: { name }, ...given });

/** @param {Record<string, any>} outcomes by id */
const messagesOf = outcomes =>
  Object.fromEntries(Object.entries(outcomes).map(([id, { deny, failure }]) => [id, (deny ?? failure).message]));

test('outcomes of synchronous policies are sent in one message, whatever other calls wait', async context => {
  const { gate, stream } = await streaming(context);
  const count = 100;
  // A message holds the outcomes of one time slice of a millisecond: here the clock stands still, so it holds all.
  const now = performance.now();
  const clock = context.mock.method(performance, 'now', () => now);
  stream.send(batch([waits('slow'), ...Array.from({ length: count }, () => plain('a'))]));
  await stream.until(count);
  clock.mock.restore();
  assert.equal(stream.messages.length, 1);
  gate('slow').open();
  const outcomes = messagesOf(await stream.rest());
  assert.deepEqual([outcomes[1], outcomes[2], outcomes[count + 1]], ['slow', 'a', 'a']);
});

test('outcomes are sent in the order in which they are known', async context => {
  const { gate, stream } = await streaming(context);
  stream.send(batch([waits('a'), waits('b')]));
  gate('b').open();
  await stream.until(1);
  gate('a').open();
  await stream.rest();
  assert.deepEqual(stream.messages, [['2'], ['1']]);
});

test('a thousand calls get a thousand outcomes', async context => {
  const { stream } = await streaming(context);
  stream.send(batch(Array.from({ length: 1000 }, (_, index) => plain(`n${index + 1}`))));
  const outcomes = messagesOf(await stream.rest());
  assert.equal(Object.keys(outcomes).length, 1000);
  for (const [id, name] of Object.entries(outcomes)) assert.equal(name, `n${id}`);
});

test('every 64-bit id is returned unchanged', async context => {
  const { stream } = await streaming(context);
  const ids = ['0', '1', '4294967295', '4294967296', '9007199254740993', '18446744073709551615'];
  stream.send({ items: ids.map(id => ({ id, call: plain(id) })) });
  assert.deepEqual(messagesOf(await stream.rest()), Object.fromEntries(ids.map(id => [id, id])));
});

test("a cancel aborts the policy's signal, and no outcome is sent", async context => {
  const { gate, stream } = await streaming(context);
  stream.send(batch([waits('a'), waits('b')]));
  await gate('begun a').opened;
  stream.send(batch([], { cancel: [1] }));
  await gate('cancelled a').opened;
  gate('b').open();
  assert.deepEqual(messagesOf(await stream.rest()), { 2: 'b' });
});

test('a cancel in the message of its call cancels it', async context => {
  const { stream } = await streaming(context);
  stream.send(batch([waits('a'), plain('b')], { cancel: [1] }));
  assert.deepEqual(messagesOf(await stream.rest()), { 2: 'b' });
});

test('unknown cancels, and items of neither kind, are ignored', async context => {
  const { stream } = await streaming(context);
  stream.send({ items: [{ id: 7, cancel: {} }, { id: 8 }] });
  stream.send(batch([plain('a')]));
  assert.deepEqual(messagesOf(await stream.rest()), { 1: 'a' });
});

test('a repeated open id gets one failure for both calls, and the first is cancelled', async context => {
  const { gate, stream } = await streaming(context);
  stream.send(batch([waits('a')]));
  await gate('begun a').opened;
  stream.send(batch([plain('b')]));
  await gate('cancelled a').opened;
  const { 1: outcome } = await stream.until(1);
  assert.match(outcome.failure.message, /has an open call with id 1 already/);
  assert.equal(outcome.version, '1');
  stream.send(batch([plain('c')], { first: 2 }));
  assert.equal(messagesOf(await stream.rest())[2], 'c');
});

test('an id whose outcome was sent can be used again', async context => {
  const { stream } = await streaming(context);
  stream.send(batch([plain('a')]));
  assert.deepEqual(messagesOf(await stream.until(1)), { 1: 'a' });
  stream.outcomes = {};
  stream.send(batch([plain('b')]));
  assert.deepEqual(messagesOf(await stream.rest()), { 1: 'b' });
});

test('document_index refers to the documents of the same message', async context => {
  const { stream } = await streaming(context);
  const documents = [{ name: 'a' }, { name: 'b' }];
  stream.send(
    batch(
      [1, 0, 1, 2].map(index => policyCall('plain', { index })),
      { documents },
    ),
  );
  const outcomes = messagesOf(await stream.rest());
  assert.equal(outcomes[4], 'document_index is 2, and its message has 2 documents');
  assert.deepEqual([outcomes[1], outcomes[2], outcomes[3]], ['b', 'a', 'b']);
});

test('a broken document is a failure of each call that shares it, and of no other', async context => {
  const { stream } = await streaming(context);
  const documents = [Buffer.from('{'), { name: 'a' }];
  stream.send(
    batch(
      [0, 0, 1].map(index => policyCall('plain', { index })),
      { documents },
    ),
  );
  const outcomes = await stream.rest();
  for (const id of [1, 2]) assert.match(outcomes[id].failure.message, /the document is not one JSON object/);
  assert.equal(outcomes[3].deny.message, 'a');
});

test("after a call's timeout it is a failure and its signal is aborted; other calls continue", async context => {
  const { gate, stream } = await streaming(context);
  // The timeout of a counts on a clock that stands still: it is not over before the call begins.
  const now = performance.now();
  const clock = context.mock.method(performance, 'now', () => now);
  stream.send(batch([waits('a', { timeout: 0.05 }), waits('b', { timeout: 3e6 }), waits('c')]));
  await gate('begun a').opened;
  clock.mock.restore();
  await gate('cancelled a').opened;
  gate('b').open();
  gate('c').open();
  const outcomes = messagesOf(await stream.rest());
  assert.equal(outcomes[1], "policy waits: no answer within the call's timeout of 0.05 s");
  assert.deepEqual([outcomes[2], outcomes[3]], ['b', 'c']);
});

test('a call whose timeout is over before it begins is a failure', async context => {
  const { stream } = await streaming(context);
  stream.send(batch([plain('a', { timeout: 0 })]));
  assert.match(messagesOf(await stream.rest())[1], /no answer within the call's timeout of 0 s/);
});

test('a function that ignores its signal counts as in flight until it ends', async context => {
  const { gate, stream } = await streaming(context, { limits: { inFlight: 1 } });
  stream.send(batch([policyCall('ignores-signal', { document: { name: 'a' } })]));
  await gate('begun a').opened;
  stream.send(batch([plain('b')], { first: 2, cancel: [1] }));
  assert.match(messagesOf(await stream.until(1))[2], /limit of 1 calls in flight/);
  stream.send(batch([plain('c')], { first: 3, cancel: [1] }));
  await stream.until(2);
  gate('a').open();
  await gate('a').opened;
  stream.send(batch([plain('d')], { first: 4 }));
  assert.equal(messagesOf(await stream.rest())[4], 'd');
});

test('unknown policies and wrong phases are failures of their calls alone', async context => {
  const { stream } = await streaming(context);
  stream.send(batch([policyCall('other'), plain('a', { phase: MUTATING }), plain('b'), {}]));
  const outcomes = await stream.rest();
  assert.deepEqual(
    [outcomes[1].failure.reason, outcomes[2].failure.reason, outcomes[3].deny.message, outcomes[4].failure.reason],
    [2, 2, 'b', 2],
  );
});

test('an undecodable message ends its stream with INVALID_ARGUMENT, and cancels its calls', async context => {
  const { gate, client, stream } = await streaming(context);
  stream.send(batch([waits('a')]));
  await gate('begun a').opened;
  stream.send(Buffer.from([0x0a, 0x7f]));
  await gate('cancelled a').opened;
  const { code, details } = await stream.ended;
  assert.equal(code, grpc.status.INVALID_ARGUMENT);
  assert.match(details, /not a ReviewStreamRequest/);
  assert.equal((await client.review(plain('b'))).deny.message, 'b');
});

test('when the stream breaks, all open calls are cancelled', async context => {
  const { gate, stream } = await streaming(context);
  stream.send(batch([waits('a'), waits('b')]));
  await gate('begun b').opened;
  stream.call.cancel();
  await gate('cancelled a').opened;
  await gate('cancelled b').opened;
});

test('after the half-close open calls are answered, and the stream ends', async context => {
  const { gate, stream } = await streaming(context);
  stream.send(batch([waits('a')]));
  await gate('begun a').opened;
  stream.call.end();
  gate('a').open();
  assert.equal((await stream.ended).code, grpc.status.OK);
  assert.deepEqual(messagesOf(stream.outcomes), { 1: 'a' });
});

test('large outcomes are sent in several messages', async context => {
  const { stream } = await streaming(context, { limits: { batchBytes: 1000 } });
  stream.send(batch(Array.from({ length: 20 }, () => plain('x'.repeat(300)))));
  assert.equal(Object.keys(await stream.rest()).length, 20);
  assert.ok(stream.messages.every(ids => ids.length <= 3));
});

test('if a peer does not read, the worker stops reading its calls, serves others, and then continues', async context => {
  const limits = { inFlight: 10, messageBytes: 100_000 };
  const worker = new Worker('test', { version: '1' });
  let judged = 0;
  worker.validating('large', {}, () => {
    judged += 1;
    return deny('x'.repeat(50_000));
  });
  gatesOf(worker, deny);
  const { client } = await connected(context, worker, { limits });
  const stream = client.stream();
  stream.call.pause();
  const count = 400;
  for (let id = 1; id <= count; id++) stream.send(batch([policyCall('large')], { first: id }));
  stream.call.end();
  // Other streams are served meanwhile; when they are answered and no further call is judged, the stream is paused.
  for (let before = -1; before !== judged;) {
    before = judged;
    const other = client.stream().send(batch([plain('a')]));
    assert.deepEqual(messagesOf(await other.rest()), { 1: 'a' });
    for (let call = 0; call < 20; call++) await client.health();
  }
  assert.ok(judged < count / 2, `${judged} of ${count} were judged for a peer that reads nothing`);
  stream.call.resume();
  assert.equal(Object.keys(await stream.until(count)).length, count);
});

test('when the peer disappears without GOAWAY, its calls are cancelled and its connection is closed', async context => {
  const { gate, served } = await streaming(context);
  const port = Number(served.address.split(':')[1]);
  // A gateway that is killed sends no GOAWAY; here the proxy in between closes.
  const between = net.createServer(near => {
    const far = net.connect(port, '127.0.0.1');
    near.pipe(far);
    far.pipe(near);
    for (const socket of [near, far]) socket.on('error', () => {});
    gate('die').opened.then(() => {
      near.destroy();
      far.end(); // and what the worker sends is read to the end
      far.resume();
    });
    far.once('close', () => gate('closed').open());
  });
  await new Promise(resolve => between.listen(0, '127.0.0.1', () => resolve(undefined)));
  const { port: found } = /** @type {import('node:net').AddressInfo} */ (between.address());
  const client = new Client(`127.0.0.1:${found}`);
  context.after(() => {
    client.close();
    between.close();
  });
  client.stream().send(batch([waits('a')]));
  await gate('begun a').opened;
  gate('die').open();
  await gate('cancelled a').opened;
  await gate('closed').opened;
});
