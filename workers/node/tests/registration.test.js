/** An invalid registration is an error before the worker serves; a valid one is described by Describe. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { allow, EVERYTHING, RegistrationError, Worker } from 'admission-worker';
import { connected } from './serving.js';

const worker = () => new Worker('test', { version: '1' });

/** @param {() => unknown} act @param {RegExp} message */
function refused(act, message) {
  assert.throws(act, error => error instanceof RegistrationError && message.test(error.message));
}

test('a worker has a name and a version', () => {
  refused(() => new Worker('', { version: '1' }), /a name is required/);
  refused(() => new Worker('a', { version: '' }), /version.*required/);
  refused(() => new Worker('a', /** @type {any} */ (undefined)), /version.*required/);
});

for (const name of ['', 'A', 'a.b', '-a', 'a-', 'a'.repeat(64), /** @type {any} */ (7)]) {
  test(`${JSON.stringify(name)} is no policy's name`, () => {
    refused(() => worker().validating(name, {}, () => allow()), /DNS-1123 label/);
  });
}

test('the longest name is 63 characters', () => {
  worker().validating('a'.repeat(63), {}, () => allow());
});

test('a name is unique over both phases', () => {
  const held = worker().validating('a', {}, () => allow());
  refused(() => held.mutating('a', {}, () => allow()), /policy "a" is registered already/);
});

test('a policy has a function', () => {
  refused(() => worker().validating('a', {}, /** @type {any} */ (undefined)), /must have a function/);
});

for (const [inputs, message] of /** @type {[any, RegExp][]} */ ([
  ['/object', /write \["\/object"\]/],
  [['object'], /is no JSON Pointer/],
  [[''], /everything is spelt EVERYTHING/],
  [['/object/~2'], /is no JSON Pointer/],
  [['/uid'], /no verdict may depend on "\/uid"/],
  [['/spec'], /is no place in an AdmissionRequest/],
  [[`/object${'/a'.repeat(256)}`], /more than 256 segments/],
  [Array.from({ length: 257 }, (_, index) => `/object/${index}`), /at most 256 pointers, there are 257/],
])) {
  test(`inputs ${JSON.stringify(inputs).slice(0, 30)} are refused`, () => {
    refused(() => worker().validating('a', { inputs }, () => allow()), message);
  });
}

test("a claim of the object's kind as writes is refused", () => {
  for (const place of ['/kind', '/apiVersion', '/*']) {
    refused(() => worker().mutating('a', { writes: [place] }, () => allow()), /the object's kind/);
  }
});

test('a validating policy writes nothing', () => {
  refused(() => worker().validating('a', /** @type {any} */ ({ writes: [] }), () => allow()), /changes nothing/);
});

test('a mistyped option is an error', () => {
  refused(() => worker().validating('a', /** @type {any} */ ({ input: [] }), () => allow()), /no option input/);
});

for (const settings of [{ type: 'string' }, { type: 'object', propertys: {} }, { type: 'object', required: 'a' }, 7]) {
  test(`${JSON.stringify(settings)} is no schema of settings`, () => {
    refused(() => worker().validating('a', { settings: /** @type {any} */ (settings) }, () => allow()), /settings/);
  });
}

test('the check of settings is a plain function', () => {
  const settings = { type: 'object' };
  const validate = /** @type {any} */ (async () => []);
  refused(() => worker().validating('a', { settings, validate }, () => allow()), /must be a plain function/);
});

test('Describe returns all registered policies in their order', async context => {
  const held = worker()
    .validating('b', { inputs: ['/object/a', '/object/a'], version: '2', description: 'Describes b.' }, () => allow())
    .mutating('a', { inputs: EVERYTHING, writes: [], settings: { type: 'object' } }, () => allow())
    .validating('c', {}, () => allow());
  const { client, log } = await connected(context, held);
  const described = await client.describe();
  assert.equal(described.worker, 'test');
  assert.equal(described.version, '1');
  const [b, a, c] = described.policies;
  assert.deepEqual([b.name, b.version, b.phases, b.description], ['b', '2', [2], 'Describes b.']);
  assert.deepEqual(b.inputs.pointers.pointers, ['/object/a']);
  assert.equal(b.writes, undefined);
  assert.deepEqual([a.name, a.version, a.phases], ['a', '', [1]]);
  assert.deepEqual(a.inputs.everything, {});
  assert.deepEqual(a.writes.pointers, {});
  assert.equal(c.inputs, undefined);
  const schema = { $schema: 'https://json-schema.org/draft/2020-12/schema', type: 'object' };
  assert.deepEqual(JSON.parse(a.settingsSchema), schema);
  assert.deepEqual(JSON.parse(c.settingsSchema), { ...schema, properties: {}, additionalProperties: false });
  assert.match(log.text, /described to gateway "0\.1\.0" at /);
});
