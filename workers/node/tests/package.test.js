/** The package: its copy of the contract, its exports and its lock file. */

import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { encodedBatch, encodedResponse, typeNamed } from '../src/messages.js';

/** @param {string} path */
const read = path => readFileSync(fileURLToPath(new URL(path, import.meta.url)), 'utf8');

test("the package's copy of the contract is the contract", () => {
  const name = 'admission/worker/v1/worker.proto';
  assert.equal(read(`../proto/${name}`), read(`../../../proto/${name}`), 'run: make proto');
});

test('every exported file exists, with its types', () => {
  const { exports } = JSON.parse(read('../package.json'));
  for (const target of Object.values(exports).flatMap(one => (typeof one === 'string' ? one : Object.values(one)))) {
    assert.ok(existsSync(fileURLToPath(new URL(`../${target}`, import.meta.url))), target);
  }
});

test('the lock file names no registry', () => {
  assert.doesNotMatch(read('../package-lock.json'), /"resolved"/);
});

test('messages made of encoded outcomes equal those that protobufjs encodes', () => {
  const plain = { deny: { code: 403, message: 'no' }, version: '1' };
  const outcome = Buffer.from(typeNamed('Outcome').encode(plain).finish());
  const response = typeNamed('ReviewResponse').encode({ outcome: plain }).finish();
  assert.deepEqual(encodedResponse(outcome), Buffer.from(response));
  const ids = [
    { low: 1, high: 0, unsigned: true },
    { low: -1, high: -1, unsigned: true },
  ];
  const items = ids.map(id => ({ id, outcome: plain }));
  const message = typeNamed('ReviewStreamResponse').encode({ items }).finish();
  assert.deepEqual(encodedBatch(ids.map(id => ({ id, outcome }))), Buffer.from(message));
});
