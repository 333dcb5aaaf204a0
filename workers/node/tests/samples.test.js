/**
 * The sample policies decide what Python's decide, to the letter: over all recorded reviews, and reviews made for the
 * corners. `expected.json` is what `expected.py` wrote.
 */

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Deny, InvalidSettingsError } from 'admission-worker';
import { review } from 'admission-worker/testing';
import { worker } from '../samples/index.js';
import { remember } from '../src/fidelity.js';
import { ask, MUTATING, VALIDATING } from './client.js';
import { connected } from './serving.js';

/** @param {string} path */
const file = path => fileURLToPath(new URL(path, import.meta.url));
const RECORDINGS = file('../../../tests/recordings/');

const expected = JSON.parse(readFileSync(file('expected.json'), 'utf8'));

/** The AdmissionReviews as they were recorded, by name. @type {Map<string, string>} */
const recorded = new Map(
  readdirSync(RECORDINGS)
    .filter(name => name.endsWith('.json'))
    .map(name => [name.replace(/\.json$/, ''), JSON.parse(readFileSync(RECORDINGS + name, 'utf8')).body]),
);

/** JSON text, with what JavaScript would forget of it. @param {string} text */
function read(text) {
  const value = JSON.parse(text);
  remember(value, text, { order: true });
  return value;
}

/** An answer as `expected.py` writes it. @param {string} policy @param {string} request @param {string} settings */
async function answered(policy, request, settings) {
  const answer = await review(worker, policy, read(request), read(settings));
  if (answer instanceof Deny) {
    const causes = answer.causes.map(({ field, message, reason }) => [field, message, reason]);
    return { deny: answer.message, code: answer.code, reason: answer.reason, causes };
  }
  assert.ok('change' in answer, JSON.stringify(answer));
  /** @type {Record<string, unknown>} */
  const found = answer.warnings.length > 0 ? { warnings: answer.warnings } : {};
  if (answer.change !== undefined && !answer.change.isEmpty) found.patch = answer.change.content;
  return Object.keys(found).length > 0 ? found : null;
}

test('every recording with a review is among the expected ones', () => {
  const reviews = [...recorded].filter(([, body]) => 'request' in JSON.parse(body)).map(([name]) => name);
  assert.deepEqual(reviews.sort(), expected.recordings);
  assert.ok(reviews.length > 100);
});

for (const { policy, settings, recorded: wanted, made } of expected.answers) {
  test(`${policy} with ${settings} decides about recorded reviews as Python's`, async () => {
    for (const name of expected.recordings) {
      const found = await answered(policy, /** @type {string} */ (recorded.get(name)), settings);
      assert.deepEqual(found, wanted[name] ?? null, name);
    }
  });

  test(`${policy} with ${settings} decides about made reviews as Python's`, async () => {
    for (const [index, request] of expected.made.entries()) {
      assert.deepEqual(await answered(policy, request, settings), made[index], request);
    }
  });
}

for (const { policy, settings, errors } of expected.wrong) {
  test(`${policy} finds wrong with ${settings} what Python's finds`, () => {
    const held = /** @type {any} */ (worker.policies.get(policy));
    assert.throws(
      () => held.settings.read(Buffer.from(settings)),
      error => {
        assert.ok(error instanceof InvalidSettingsError);
        assert.deepEqual(
          error.errors.map(({ pointer, message }) => [pointer, message]),
          errors,
        );
        return true;
      },
    );
  });
}

test('a default is written as the operator wrote it', async () => {
  const request =
    '{"operation":"CREATE","kind":{"group":"","version":"v1","kind":"Pod"},"object":{"spec":{"containers":[{}]}}}';
  const found = await answered('default-resources', request, '{"requests":{"cpu":0.50,"memory":1e3}}');
  assert.deepEqual(JSON.parse(/** @type {string} */ (found?.patch))[0].value, {
    requests: { cpu: '0.50', memory: '1e3' },
  });
});

test('over the wire, every sample judges every recorded review of its phase', async context => {
  const { client } = await connected(context, worker);
  const stream = client.stream();
  /** @type {any[]} */
  const items = [];
  for (const [name, body] of recorded) {
    const { request } = JSON.parse(body);
    const phase = /m$/.test(name) ? MUTATING : VALIDATING;
    for (const { policy, settings } of expected.answers) {
      const isOfPhase = worker.policies.get(policy)?.phase === (phase === MUTATING ? 'mutating' : 'validating');
      if (!request || !isOfPhase) continue;
      items.push({
        id: items.length + 1,
        ask: ask(policy, { phase, settings: Buffer.from(settings), document: request }),
      });
    }
  }
  stream.send({ items });
  const outcomes = Object.values(await stream.rest());
  assert.equal(outcomes.length, items.length);
  for (const outcome of outcomes) assert.equal(outcome.failure, undefined, outcome.failure?.message);
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
