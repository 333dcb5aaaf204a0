/** Addresses, as operators write them. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AddressError } from 'admission-worker';
import { addressText, parseAddress } from '../src/address.js';

for (const [text, wanted] of [
  ['127.0.0.1:0', '127.0.0.1:0'],
  ['localhost:65535', 'localhost:65535'],
  ['[::1]:0', '[::1]:0'],
  ['dns:///labels.policies.svc:50051', 'labels.policies.svc:50051'],
  ['unix:w.sock', 'unix:w.sock'],
  ['unix:///run/w.sock', 'unix:/run/w.sock'],
  [`unix:${'a'.repeat(107)}`, `unix:${'a'.repeat(107)}`],
]) {
  test(`${text.slice(0, 40)} is an address`, () => assert.equal(addressText(parseAddress(text)), wanted));
}

for (const text of [
  ...['', 'a', ':1', 'a:', 'a:65536', 'a:-1', 'a:1x', '::1:0', 'http://a:1', 'a b:1', 'unix:', 'unix://run/w.sock'],
  `unix:${'a'.repeat(108)}`,
]) {
  test(`${JSON.stringify(text).slice(0, 40)} is none`, () => {
    assert.throws(() => parseAddress(text), AddressError);
  });
}
