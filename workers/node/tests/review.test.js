/** Review: every form of answer over the wire, and every failure of a call. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import grpc from '@grpc/grpc-js';
import { allow, deny, fail, merge, mutated, NO_STORE, patch, Worker } from 'admission-worker';
import { policyCall, MUTATING } from './client.js';
import { connected, gatesOf } from './serving.js';

const COMMON = { warnings: ['careful'], auditAnnotations: { checked: 'yes' }, cache: 1.5 };

/** @type {Record<string, [() => any, any]>} what a policy returns, and its Outcome without version and verdict */
const ARMS = {
  allow: [() => allow(), { allow: {} }],
  nothing: [() => undefined, { allow: {} }],
  null: [() => null, { allow: {} }],
  everything: [
    () => allow(COMMON),
    {
      allow: {},
      warnings: ['careful'],
      auditAnnotations: { checked: 'yes' },
      cache: { ttl: { seconds: '1', nanos: 500_000_000 }, hint: 'ttl' },
    },
  ],
  'no-store': [() => allow({ cache: NO_STORE }), { allow: {}, cache: { noStore: {}, hint: 'noStore' } }],
  deny: [() => deny('no'), { deny: { code: 403, _code: 'code', message: 'no', reason: 'Forbidden' } }],
  'deny fully': [
    () =>
      deny('no', {
        code: 409,
        causes: [{ field: 'spec.a', message: 'bad' }],
        details: { name: 'n', group: 'g', kind: 'K', uid: 'u', retryAfterSeconds: 7 },
      }),
    {
      deny: {
        code: 409,
        _code: 'code',
        message: 'no',
        reason: 'Conflict',
        details: {
          ...{ name: 'n', group: 'g', kind: 'K', uid: 'u', retryAfterSeconds: 7 },
          causes: [{ reason: 'FieldValueInvalid', message: 'bad', field: 'spec.a' }],
        },
      },
    },
  ],
  patch: [
    () => patch([{ op: 'remove', path: '/a' }]),
    { allow: { jsonPatch: '[{"op":"remove","path":"/a"}]', change: 'jsonPatch' } },
  ],
  'no operations': [() => patch([]), { allow: {} }],
  merge: [() => merge({ a: null }), { allow: { mergePatch: '{"a":null}', change: 'mergePatch' } }],
  'empty merge': [() => merge({}), { allow: {} }],
  mutated: [() => mutated({ a: 'ä' }), { allow: { object: '{"a":"ä"}', change: 'object' } }],
  'in time': [async () => deny('later'), { deny: { code: 403, _code: 'code', message: 'later', reason: 'Forbidden' } }],
};

for (const [name, [returns, wanted]] of Object.entries(ARMS)) {
  test(`${name} is sent unchanged`, async context => {
    const { client } = await connected(context, new Worker('test', { version: '1' }).mutating('policy', {}, returns));
    const { version, verdict, ...outcome } = await client.review(policyCall('policy', { phase: MUTATING }));
    assert.equal(version, '1');
    assert.equal(verdict, Object.keys(wanted)[0]);
    for (const arm of ['jsonPatch', 'mergePatch', 'object']) {
      if (outcome.allow?.[arm]) outcome.allow[arm] = String(outcome.allow[arm]);
    }
    assert.deepEqual(outcome, wanted);
  });
}

/** @type {[string, (request: any) => any, RegExp][]} */
const FAILURES = [
  ['fail', () => fail('cannot know'), /^cannot know$/],
  [
    'a throw',
    () => {
      throw new RangeError('a secret');
    },
    /^policy policy threw RangeError; see the worker's log$/,
  ],
  ['a rejection', () => Promise.reject(new TypeError('a secret')), /^policy policy threw TypeError; see/],
  ['a text thrown', () => Promise.reject('a secret'), /^policy policy threw string; see/],
  ['nothing rejected', () => Promise.reject(), /^policy policy threw undefined; see/],
  [
    'an error whose name is a secret',
    () => Promise.reject(Object.assign(new Error('x'), { name: 'a secret' })),
    /^policy policy threw Error; see/,
  ],
  ['an answer that is none', () => ({ allow: true }), /InvalidAnswerError: returned object: must be allow\(\)/],
  ['a change in the validating phase', () => merge({ a: 1 }), /returned a change \(mergePatch\): only a mutating/],
  ['an answer that means nothing', () => allow({ warnings: /** @type {any} */ (7) }), /warnings: must be an array/],
  ['a member that is not what it should be', request => deny(request.name), /the document's name cannot be read/],
];

for (const [name, judge, message] of FAILURES) {
  test(`${name} is a failure, and its text stays in the log`, async context => {
    const worker = new Worker('test', { version: '1' }).validating('policy', { version: '3' }, judge);
    const { client, log } = await connected(context, worker);
    const outcome = await client.review(policyCall('policy', { document: { name: 7 }, uid: 'the-uid' }));
    assert.match(outcome.failure?.message ?? '', message);
    assert.doesNotMatch(outcome.failure.message, /secret/);
    assert.equal(outcome.version, '3');
    assert.match(log.text, /policy policy .*\(uid the-uid\)/);
  });
}

test('the message of fail is logged with the uid', async context => {
  const worker = new Worker('test', { version: '1' }).validating('policy', {}, () => fail('no database'));
  const { client, log } = await connected(context, worker);
  await client.review(policyCall('policy', { uid: 'the-uid' }));
  assert.match(log.text, /policy policy could not judge: no database \(uid the-uid\)/);
});

test('an unknown policy, or one of the other phase, is UNKNOWN_POLICY', async context => {
  const { client } = await connected(
    context,
    new Worker('test', { version: '1' }).validating('a', {}, () => allow()),
  );
  const unknown = await client.review(policyCall('b'));
  assert.deepEqual([unknown.failure.reason, unknown.version], [2, '1']);
  assert.equal(unknown.failure.message, 'worker test holds no policy "b"; it holds: a');
  for (const [phase, named] of /** @type {const} */ ([
    [MUTATING, 'the mutating phase'],
    [0, 'no phase (0)'],
    [9, 'no phase (9)'],
  ])) {
    const { failure } = await client.review(policyCall('a', { phase }));
    assert.equal(failure.reason, 2);
    assert.equal(failure.message, `policy a is for the validating phase and was called in ${named}`);
  }
});

for (const [name, document] of /** @type {[string, any][]} */ ([
  ['none', null],
  ['empty', Buffer.from('')],
  ['no JSON', Buffer.from('{"a secret": }')],
  ['no object', Buffer.from('[1]')],
  ['no UTF-8', Buffer.from([0x7b, 0xff, 0x7d])],
])) {
  test(`a document that is ${name} is a failure that quotes nothing`, async context => {
    const worker = new Worker('test', { version: '1' }).validating('a', {}, () => allow());
    const { client } = await connected(context, worker);
    const { failure } = await client.review(policyCall('a', { document }));
    assert.match(failure.message, /^policy a(:| was)/);
    assert.doesNotMatch(failure.message, /secret/);
  });
}

test('document_index and timeout are not used on Review', async context => {
  const { client } = await connected(
    context,
    new Worker('test', { version: '1' }).validating('a', {}, () => allow()),
  );
  assert.match((await client.review(policyCall('a', { index: 0 }))).failure.message, /without a document/);
  assert.ok((await client.review(policyCall('a', { timeout: 0 }))).allow);
});

test('each policy reads a document of its own', async context => {
  const worker = new Worker('test', { version: '1' });
  worker.validating('a', {}, request => {
    request.document.name = 'changed';
    return deny(request.raw.toString());
  });
  const { client } = await connected(context, worker);
  const stream = client.stream();
  const documents = [{ name: 'shared' }];
  stream.send({
    documents: documents.map(one => Buffer.from(JSON.stringify(one))),
    items: [1, 2].map(id => ({ id, call: policyCall('a', { index: 0 }) })),
  });
  const outcomes = await stream.rest();
  assert.deepEqual([outcomes[1].deny.message, outcomes[2].deny.message], Array(2).fill('{"name":"shared"}'));
});

test('after the deadline the call is DEADLINE_EXCEEDED, and its signal is aborted', async context => {
  const worker = new Worker('test', { version: '1' });
  const gate = gatesOf(worker, deny);
  const { client } = await connected(context, worker);
  let isBegun = false;
  gate('begun a').opened.then(() => {
    isBegun = true;
  });
  // On a busy machine the deadline may be over before the call begins.
  for (let patience = 50; !isBegun; patience *= 2) {
    const late = client.review(policyCall('waits', { document: { name: 'a' } }), { patience });
    await assert.rejects(late, { code: grpc.status.DEADLINE_EXCEEDED });
  }
  await gate('cancelled a').opened;
});

test("a cancelled call aborts its policy's signal", async context => {
  const worker = new Worker('test', { version: '1' });
  const gate = gatesOf(worker, deny);
  const { client } = await connected(context, worker);
  const caller = new AbortController();
  const call = client.review(policyCall('waits', { document: { name: 'a' } }), { signal: caller.signal });
  await gate('begun a').opened;
  caller.abort();
  await assert.rejects(call, { code: grpc.status.CANCELLED });
  await gate('cancelled a').opened;
});

test('a call beyond the limit is RESOURCE_EXHAUSTED until the function of another has ended', async context => {
  const worker = new Worker('test', { version: '1' });
  const gate = gatesOf(worker, deny);
  const { client } = await connected(context, worker, { limits: { inFlight: 1 } });
  const first = client.review(policyCall('waits', { document: { name: 'a' } }));
  await gate('begun a').opened;
  await assert.rejects(client.review(policyCall('plain')), error => {
    const { code, details } = /** @type {grpc.ServiceError} */ (error);
    return code === grpc.status.RESOURCE_EXHAUSTED && /limit of 1 calls in flight/.test(details);
  });
  gate('a').open();
  await first;
  assert.equal((await client.review(policyCall('plain'))).deny.message, 'nameless');
});

test('an answer larger than a message is a failure that names size and limit', async context => {
  const worker = new Worker('test', { version: '1' }).validating('a', {}, () => deny('x'.repeat(5000)));
  const { client } = await connected(context, worker, { limits: { messageBytes: 4000 } });
  const { failure } = await client.review(policyCall('a'));
  assert.match(failure.message, /the answer has 50\d\d bytes, at most 3936 fit a message/);
});

for (const [method, bytes] of /** @type {[string, Buffer][]} */ ([
  ['Describe', Buffer.from([0x0a, 0x7f])],
  ['ValidateSettings', Buffer.from([0x0a, 0x01, 0xff])],
  ['Review', Buffer.from([0x0a, 0x02, 0x0a])],
  ['Review', Buffer.from([])],
])) {
  test(`${method} of [${[...bytes]}] is INVALID_ARGUMENT`, async context => {
    const { client } = await connected(context, new Worker('test', { version: '1' }));
    await assert.rejects(client.worker(method, bytes), { code: grpc.status.INVALID_ARGUMENT });
  });
}

test('a request larger than a message is refused, and the worker continues', async context => {
  const worker = new Worker('test', { version: '1' }).validating('a', {}, () => allow());
  const { client } = await connected(context, worker, { limits: { messageBytes: 4000 } });
  const large = policyCall('a', { document: { a: 'x'.repeat(5000) } });
  await assert.rejects(client.review(large), { code: grpc.status.RESOURCE_EXHAUSTED });
  assert.ok((await client.review(policyCall('a'))).allow);
});

test('health is known overall and by name', async context => {
  const { client } = await connected(context, new Worker('test', { version: '1' }));
  assert.equal(await client.health(), 1);
  assert.equal(await client.health('admission.worker.v1.Worker'), 1);
  await assert.rejects(client.health('other'), { code: grpc.status.NOT_FOUND });
});
