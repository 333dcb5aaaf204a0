/** What is particular to the samples in JavaScript. The conformance kit checks their decisions. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { review } from 'admission-worker/testing';
import { worker } from '../samples/index.js';
import { remember } from '../src/fidelity.js';
import { MUTATING } from './client.js';
import { connected } from './serving.js';

/** Parsed JSON text with its number texts. @param {string} text */
function read(text) {
  const value = JSON.parse(text);
  remember(value, text, { order: true });
  return value;
}

test('a default is written as the operator wrote it', async () => {
  const request =
    '{"operation":"CREATE","kind":{"group":"","version":"v1","kind":"Pod"},"object":{"spec":{"containers":[{}]}}}';
  const settings = '{"requests":{"cpu":0.50,"memory":1e3}}';
  const answer = await review(worker, 'default-resources', read(request), read(settings));
  assert.ok('change' in answer && answer.change, JSON.stringify(answer));
  assert.deepEqual(JSON.parse(answer.change.content)[0].value, { requests: { cpu: '0.50', memory: '1e3' } });
});

test('the samples describe themselves completely', async context => {
  const { client } = await connected(context, worker);
  const { policies, version } = await client.describe();
  assert.equal(version, '0.1.0');
  assert.equal(policies.length, 6);
  for (const { description, settingsSchema, inputs, writes, phases } of policies) {
    assert.match(description, /\.$/);
    assert.ok(JSON.parse(settingsSchema).properties);
    assert.ok(inputs.pointers.pointers.every((/** @type {string} */ one) => /^\/(object|oldObject)\//.test(one)));
    assert.equal(writes !== undefined, phases[0] === MUTATING);
  }
});
