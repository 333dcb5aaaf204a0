/** Settings: all errors are reported at once, each at its place; each distinct text is read once, and shared. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { allow, deny, SettingsError, SettingsWarning, Worker } from 'admission-worker';
import { policyCall } from './client.js';
import { connected } from './serving.js';

const SCHEMA = {
  type: 'object',
  properties: {
    key: { type: 'string', pattern: '^[a-z]+$' },
    sizes: { type: 'array', items: { type: 'integer', minimum: 1 } },
    nested: {
      type: 'object',
      properties: { a: { type: 'boolean' } },
      required: ['a'],
      additionalProperties: false,
    },
    mode: { enum: ['on', 'off'], default: 'on' },
  },
  required: ['key'],
  additionalProperties: false,
};

/** @param {import('node:test').TestContext} context @param {any} options @param {any} [judge] */
function serving(context, options, judge = () => allow()) {
  return connected(context, new Worker('test', { version: '1' }).validating('policy', options, judge));
}

test('all errors are reported at once, each at its place', async context => {
  const { client } = await serving(context, { settings: SCHEMA });
  const { errors } = await client.validate('policy', { sizes: [1, 0, 'x'], nested: { 'b/~': 1 }, mode: 'x', extra: 1 });
  assert.deepEqual(errors.sort(), [
    ['/extra', 'Unknown member; known are: key, mode, nested, sizes'],
    ['/key', 'Required value'],
    ['/mode', 'must be one of "on", "off"'],
    ['/nested/a', 'Required value'],
    ['/nested/b~1~0', 'Unknown member; known are: a'],
    ['/sizes/1', 'must be >= 1'],
    ['/sizes/2', 'must be integer, is string'],
  ]);
});

for (const [text, message] of /** @type {[string, RegExp][]} */ ([
  ['', /must be one JSON object, never empty/],
  ['{', /no JSON/],
  ['[]', /found an array/],
  ['null', /found null/],
  ['"secret text"x', /no JSON/],
])) {
  test(`${JSON.stringify(text)} is no settings`, async context => {
    const { client } = await serving(context, { settings: SCHEMA });
    const { errors } = await client.validate('policy', Buffer.from(text));
    assert.equal(errors.length, 1);
    assert.equal(errors[0][0], '');
    assert.match(errors[0][1], message);
    assert.doesNotMatch(errors[0][1], /secret/);
  });
}

test('settings that are no UTF-8 are refused', async context => {
  const { client } = await serving(context, { settings: SCHEMA });
  const { errors } = await client.validate('policy', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]));
  assert.match(errors[0][1], /no UTF-8/);
});

test('a policy without settings accepts {} and nothing else', async context => {
  const { client } = await serving(context, {});
  assert.deepEqual((await client.validate('policy', {})).errors, []);
  assert.deepEqual((await client.validate('policy', { a: 1 })).errors, [['/a', 'Unknown member; known are: none']]);
});

test('a member that a schema allows but does not name is a warning', async context => {
  const { client } = await serving(context, { settings: { type: 'object', properties: { a: { type: 'string' } } } });
  const { errors, warnings } = await client.validate('policy', { a: '', b: 1 });
  assert.deepEqual(errors, []);
  assert.deepEqual(warnings, ['/b is no member of these settings and is ignored']);
});

test("the author's check returns errors, texts and warnings", async context => {
  /** @param {any} settings */
  const validate = function* ({ key }) {
    if (key === 'bad') yield new SettingsError('/key', 'must not be bad');
    if (key === 'bad') yield 'all of it is bad';
    yield new SettingsWarning('goes away');
  };
  const { client } = await serving(context, { settings: SCHEMA, validate });
  assert.deepEqual(await client.validate('policy', { key: 'bad' }), {
    errors: [
      ['/key', 'must not be bad'],
      ['', 'all of it is bad'],
    ],
    warnings: [],
  });
  assert.deepEqual(await client.validate('policy', { key: 'good' }), { errors: [], warnings: ['goes away'] });
});

test("a check that throws is an error of the settings, and its text stays in the worker's log", async context => {
  const validate = () => {
    throw new RangeError('a secret');
  };
  const { client, log } = await serving(context, { settings: SCHEMA, validate });
  const { errors } = await client.validate('policy', { key: 'a' });
  assert.deepEqual(errors, [['', 'The settings could not be checked: RangeError in the worker; see its log']]);
  const outcome = await client.review(policyCall('policy', { settings: { key: 'a' } }));
  assert.equal(outcome.failure.reason, 1);
  assert.doesNotMatch(outcome.failure.message, /secret/);
  assert.equal(log.text.match(/RangeError: a secret/g)?.length, 2);
});

test('ValidateSettings does not call the policy', async context => {
  let judged = 0;
  const { client } = await serving(context, { settings: SCHEMA }, () => {
    judged += 1;
  });
  await client.validate('policy', { key: 'a' });
  assert.equal(judged, 0);
});

test('what ValidateSettings refuses, a review refuses as INVALID_SETTINGS', async context => {
  const { client } = await serving(context, { settings: SCHEMA });
  const { failure, version } = await client.review(policyCall('policy', { settings: {} }));
  assert.deepEqual([failure.reason, failure.message], [1, 'settings of policy policy: /key: Required value']);
  assert.equal(version, '1');
});

test('settings are read once, frozen, shared, and have their defaults', async context => {
  /** @type {any[]} */
  const seen = [];
  const { client } = await serving(
    context,
    { settings: SCHEMA },
    (/** @type {any} */ _, /** @type {any} */ settings) => {
      seen.push(settings);
      return deny(settings.mode);
    },
  );
  const settings = { key: 'a', nested: { a: true } };
  assert.equal((await client.review(policyCall('policy', { settings }))).deny.message, 'on');
  await client.review(policyCall('policy', { settings }));
  assert.equal(seen[0], seen[1]);
  assert.throws(() => {
    seen[0].nested.a = false;
  }, TypeError);
});

test('with more settings than the cache holds, each call is judged by its own', async context => {
  const worker = new Worker('test', { version: '1' });
  worker.validating('policy', { settings: SCHEMA }, (_, { key }) => deny(key));
  const { client } = await connected(context, worker, { limits: { settingsKept: 3, settingsKeptBytes: 40 } });
  for (const key of ['a', 'b', 'c', 'd', 'e', 'a', 'averylongkeyaverylongkeyaverylongkey', 'b']) {
    assert.equal((await client.review(policyCall('policy', { settings: { key } }))).deny.message, key);
  }
});

test('settings of an unknown policy are an error', async context => {
  const { client } = await serving(context, {});
  assert.deepEqual((await client.validate('other', {})).errors, [['', 'the worker holds no policy "other"']]);
});
