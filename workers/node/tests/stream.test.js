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

/** @param {Record<string, any>} outcomes what was said, by id */
const said = outcomes =>
  Object.fromEntries(Object.entries(outcomes).map(([id, { deny, failure }]) => [id, (deny ?? failure).message]));

test('what is known at once travels together, whatever waits', async context => {
  const { gate, stream } = await streaming(context);
  const count = 100;
  // A message holds what was judged in one slice of a millisecond: here the clock stands still, so that is everything.
  const now = performance.now();
  const clock = context.mock.method(performance, 'now', () => now);
  stream.send(batch([waits('slow'), ...Array.from({ length: count }, () => plain('a'))]));
  await stream.until(count);
  clock.mock.restore();
  assert.equal(stream.messages.length, 1);
  gate('slow').open();
  const outcomes = said(await stream.rest());
  assert.deepEqual([outcomes[1], outcomes[2], outcomes[count + 1]], ['slow', 'a', 'a']);
});

test('outcomes come in the order in which they are known', async context => {
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
  const outcomes = said(await stream.rest());
  assert.equal(Object.keys(outcomes).length, 1000);
  for (const [id, name] of Object.entries(outcomes)) assert.equal(name, `n${id}`);
});

test('every id of 64 bits comes back as it was sent', async context => {
  const { stream } = await streaming(context);
  const ids = ['0', '1', '4294967295', '4294967296', '9007199254740993', '18446744073709551615'];
  stream.send({ items: ids.map(id => ({ id, call: plain(id) })) });
  assert.deepEqual(said(await stream.rest()), Object.fromEntries(ids.map(id => [id, id])));
});

test('a cancel stops the work, and no outcome is sent', async context => {
  const { gate, stream } = await streaming(context);
  stream.send(batch([waits('a'), waits('b')]));
  await gate('begun a').opened;
  stream.send(batch([], { cancel: [1] }));
  await gate('cancelled a').opened;
  gate('b').open();
  assert.deepEqual(said(await stream.rest()), { 2: 'b' });
});

test('a cancel in the message of its call comes after it', async context => {
  const { stream } = await streaming(context);
  stream.send(batch([waits('a'), plain('b')], { cancel: [1] }));
  assert.deepEqual(said(await stream.rest()), { 2: 'b' });
});

test('unknown cancels, and items of neither kind, are ignored', async context => {
  const { stream } = await streaming(context);
  stream.send({ items: [{ id: 7, cancel: {} }, { id: 8 }] });
  stream.send(batch([plain('a')]));
  assert.deepEqual(said(await stream.rest()), { 1: 'a' });
});

test('an id that is open already gets one failure for both, and the first work is told', async context => {
  const { gate, stream } = await streaming(context);
  stream.send(batch([waits('a')]));
  await gate('begun a').opened;
  stream.send(batch([plain('b')]));
  await gate('cancelled a').opened;
  const { 1: outcome } = await stream.until(1);
  assert.match(outcome.failure.message, /has an open call with id 1 already/);
  assert.equal(outcome.version, '1');
  stream.send(batch([plain('c')], { first: 2 }));
  assert.equal(said(await stream.rest())[2], 'c');
});

test('an id whose outcome has come can be used again', async context => {
  const { stream } = await streaming(context);
  stream.send(batch([plain('a')]));
  assert.deepEqual(said(await stream.until(1)), { 1: 'a' });
  stream.outcomes = {};
  stream.send(batch([plain('b')]));
  assert.deepEqual(said(await stream.rest()), { 1: 'b' });
});

test('calls find their document by its place in their own message', async context => {
  const { stream } = await streaming(context);
  const documents = [{ name: 'a' }, { name: 'b' }];
  stream.send(
    batch(
      [1, 0, 1, 2].map(index => policyCall('plain', { index })),
      { documents },
    ),
  );
  const outcomes = said(await stream.rest());
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

test("after its timeout a call is a failure, and its work is told; another's is not", async context => {
  const { gate, stream } = await streaming(context);
  // For a it is counted from a clock that stands still: its time is not over before it has begun.
  const now = performance.now();
  const clock = context.mock.method(performance, 'now', () => now);
  stream.send(batch([waits('a', { timeout: 0.05 }), waits('b', { timeout: 3e6 }), waits('c')]));
  await gate('begun a').opened;
  clock.mock.restore();
  await gate('cancelled a').opened;
  gate('b').open();
  gate('c').open();
  const outcomes = said(await stream.rest());
  assert.equal(outcomes[1], "policy waits: no answer within the call's timeout of 0.05 s");
  assert.deepEqual([outcomes[2], outcomes[3]], ['b', 'c']);
});

test('a call whose time is over before it is begun is a failure', async context => {
  const { stream } = await streaming(context);
  stream.send(batch([plain('a', { timeout: 0 })]));
  assert.match(said(await stream.rest())[1], /no answer within the call's timeout of 0 s/);
});

test('work that does not hear its signal keeps its place until it ends', async context => {
  const { gate, stream } = await streaming(context, { limits: { inFlight: 1 } });
  stream.send(batch([policyCall('deaf', { document: { name: 'a' } })]));
  await gate('begun a').opened;
  stream.send(batch([plain('b')], { first: 2, cancel: [1] }));
  assert.match(said(await stream.until(1))[2], /limit of 1 calls in flight/);
  stream.send(batch([plain('c')], { first: 3, cancel: [1] }));
  await stream.until(2);
  gate('a').open();
  await gate('a').opened;
  stream.send(batch([plain('d')], { first: 4 }));
  assert.equal(said(await stream.rest())[4], 'd');
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

test('a message that cannot be read ends its stream with INVALID_ARGUMENT, and stops its work', async context => {
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

test('when the stream breaks, everything open is stopped', async context => {
  const { gate, stream } = await streaming(context);
  stream.send(batch([waits('a'), waits('b')]));
  await gate('begun b').opened;
  stream.call.cancel();
  await gate('cancelled a').opened;
  await gate('cancelled b').opened;
});

test('after the half-close what is open is answered, and the stream ends', async context => {
  const { gate, stream } = await streaming(context);
  stream.send(batch([waits('a')]));
  await gate('begun a').opened;
  stream.call.end();
  gate('a').open();
  assert.equal((await stream.ended).code, grpc.status.OK);
  assert.deepEqual(said(stream.outcomes), { 1: 'a' });
});

test('large outcomes are split over messages, and all arrive', async context => {
  const { stream } = await streaming(context, { limits: { batchBytes: 1000 } });
  stream.send(batch(Array.from({ length: 20 }, () => plain('x'.repeat(300)))));
  assert.equal(Object.keys(await stream.rest()).length, 20);
  assert.ok(stream.messages.every(ids => ids.length <= 3));
});

test('a peer that does not read is not read either, holds up nobody, and gets everything when it reads', async context => {
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
  // Others are served meanwhile; when their answers have come and nothing more is judged, the stream stands still.
  for (let before = -1; before !== judged;) {
    before = judged;
    const other = client.stream().send(batch([plain('a')]));
    assert.deepEqual(said(await other.rest()), { 1: 'a' });
    for (let call = 0; call < 20; call++) await client.health();
  }
  assert.ok(judged < count / 2, `${judged} of ${count} were judged for a peer that reads nothing`);
  stream.call.resume();
  assert.equal(Object.keys(await stream.until(count)).length, count);
});

test('when the peer has gone without a farewell, everything open is stopped and its connection closed', async context => {
  const { gate, served } = await streaming(context);
  const port = Number(served.address.split(':')[1]);
  // A gateway that dies sends no GOAWAY; here it is what stands between that goes.
  const between = net.createServer(near => {
    const far = net.connect(port, '127.0.0.1');
    near.pipe(far);
    far.pipe(near);
    for (const socket of [near, far]) socket.on('error', () => {});
    gate('die').opened.then(() => {
      near.destroy();
      far.end(); // and what the worker says is still read, until it says no more
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
