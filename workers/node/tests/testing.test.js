/** `admission-worker/testing`: a policy without a server receives only what it claims. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { allow, deny, EVERYTHING, InvalidAnswerError, InvalidSettingsError, merge, Worker } from 'admission-worker';
import { review } from 'admission-worker/testing';

/** @param {any} inputs @param {any} judge */
const holding = (inputs, judge) => new Worker('test', { version: '1' }).validating('policy', { inputs }, judge);

const REQUEST = {
  uid: 'u',
  operation: 'CREATE',
  kind: { group: '', version: 'v1', kind: 'Pod' },
  name: 'n',
  object: {
    metadata: { name: 'n', labels: { a: 'b' } },
    spec: { containers: [{ name: 'x', image: 'y' }, ['deep'], 7], nodeName: 'z' },
  },
  oldObject: null,
  namespaceObject: { metadata: { name: 'ns' } },
};

/** @param {any} inputs */
async function shown(inputs) {
  const answer = await review(
    holding(inputs, (/** @type {any} */ { document }) => deny(JSON.stringify(document))),
    'policy',
    REQUEST,
  );
  return JSON.parse(/** @type {import('admission-worker').Deny} */ (answer).message);
}

test('a policy receives its claims, and the members of every document', async () => {
  assert.deepEqual(await shown(['/object/metadata/labels', '/object/spec/containers/*/image']), {
    operation: 'CREATE',
    kind: REQUEST.kind,
    object: { metadata: { labels: { a: 'b' } }, spec: { containers: [{ image: 'y' }, [null], null] } },
  });
  assert.deepEqual(await shown([]), { operation: 'CREATE', kind: REQUEST.kind });
});

test('EVERYTHING, like no claim, is all but the uid and the Namespace', async () => {
  const { uid, namespaceObject, ...rest } = REQUEST;
  assert.deepEqual(await shown(EVERYTHING), rest);
  assert.deepEqual(await shown(undefined), rest);
  assert.deepEqual(await shown(['/namespaceObject']), { operation: 'CREATE', kind: REQUEST.kind, namespaceObject });
});

test('the request of an AdmissionReview is used, with its uid', async () => {
  const worker = holding(undefined, (/** @type {any} */ { uid, name }) => deny(`${uid} ${name}`));
  assert.deepEqual(await review(worker, 'policy', { kind: 'AdmissionReview', request: REQUEST }), deny('u n'));
});

test('no answer is allow(), and a promise is awaited', async () => {
  assert.deepEqual(
    await review(
      holding([], () => undefined),
      'policy',
      {},
    ),
    allow(),
  );
  assert.deepEqual(
    await review(
      holding([], async () => deny('x')),
      'policy',
      {},
    ),
    deny('x'),
  );
});

test('what a policy throws comes through, and so do wrong answers and settings', async () => {
  const thrown = new RangeError('mine');
  const throwing = holding([], () => {
    throw thrown;
  });
  await assert.rejects(review(throwing, 'policy', {}), error => error === thrown);
  await assert.rejects(
    review(
      holding([], () => merge({ a: 1 })),
      'policy',
      {},
    ),
    InvalidAnswerError,
  );
  await assert.rejects(review(throwing, 'policy', {}, { a: 1 }), InvalidSettingsError);
  await assert.rejects(review(throwing, 'other', {}), /holds no policy "other"; it holds: policy/);
});

test('the caller can give up', async () => {
  const worker = holding([], async (/** @type {any} */ { signal }) => {
    if (!signal.aborted) await new Promise(resolve => signal.addEventListener('abort', resolve));
    return deny(signal.reason.name);
  });
  const caller = new AbortController();
  const answer = review(worker, 'policy', {}, {}, { signal: caller.signal });
  caller.abort();
  assert.deepEqual(await answer, deny('AbortError'));
});
