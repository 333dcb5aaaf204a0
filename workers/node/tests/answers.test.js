/** Answers cannot be built wrong: what means nothing is an error where it is made. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  allow,
  Deny,
  deny,
  fail,
  InvalidAnswerError,
  merge,
  mutated,
  NO_STORE,
  patch,
  pointer,
} from 'admission-worker';

/** @param {() => unknown} act @param {RegExp} message */
function refused(act, message) {
  assert.throws(act, error => error instanceof InvalidAnswerError && message.test(error.message));
}

const REASONS = {
  ...{ 400: 'BadRequest', 401: 'Unauthorized', 403: 'Forbidden', 404: 'NotFound', 405: 'MethodNotAllowed' },
  ...{ 406: 'NotAcceptable', 409: 'Conflict', 410: 'Gone', 413: 'RequestEntityTooLarge', 415: 'UnsupportedMediaType' },
  ...{ 422: 'Invalid', 429: 'TooManyRequests', 500: 'InternalError', 503: 'ServiceUnavailable', 504: 'Timeout' },
};

test("a code has Kubernetes' reason, and another one none", () => {
  for (const [code, reason] of Object.entries(REASONS)) assert.equal(deny('', { code: Number(code) }).reason, reason);
  assert.equal(deny('', { code: 418 }).reason, '');
  assert.equal(deny('', { code: 418, reason: 'Teapot' }).reason, 'Teapot');
});

test('deny without a code is 403 Forbidden', () => {
  const { code, reason } = deny('no');
  assert.deepEqual([code, reason], [403, 'Forbidden']);
});

test('answers are values: equal where they say the same, and frozen', () => {
  const causes = [{ field: 'a', message: 'b' }];
  assert.deepEqual(deny('no', { causes }), deny('no', { causes: [{ ...causes[0], reason: 'FieldValueInvalid' }] }));
  assert.notDeepEqual(deny('no'), deny('yes'));
  assert.throws(() => Object.assign(deny('no'), { message: 'yes' }), TypeError);
  assert.ok(deny('no') instanceof Deny);
});

test('later changes of values do not change the answer', () => {
  const labels = { team: 'a' };
  const warnings = ['one'];
  const answer = merge({ metadata: { labels } }, { warnings });
  labels.team = 'b';
  warnings.push('two');
  assert.deepEqual(answer.change?.value, { metadata: { labels: { team: 'a' } } });
  assert.deepEqual(answer.warnings, ['one']);
});

for (const [name, act, message] of /** @type {[string, () => unknown, RegExp][]} */ ([
  ['a message that is no text', () => deny(/** @type {any} */ (7)), /deny's message: must be text, is number/],
  ['a lone surrogate', () => fail('\ud800'), /lone surrogate/],
  ['warnings that are one text', () => allow({ warnings: 'text' }), /warnings: must be an array, is string/],
  ['a warning that is no text', () => allow({ warnings: /** @type {any} */ ([1]) }), /warnings\[0\]: must be text/],
  ['an audit key with a slash', () => allow({ auditAnnotations: { 'a/b': '' } }), /the key "a\/b" must be 1 to 63/],
  ['an empty audit key', () => allow({ auditAnnotations: { '': '' } }), /1 to 63/],
  ['an audit key of 64', () => allow({ auditAnnotations: { ['a'.repeat(64)]: '' } }), /1 to 63/],
  ['an audit value that is no text', () => allow({ auditAnnotations: /** @type {any} */ ({ a: 1 }) }), /must be text/],
  ['a code beyond int32', () => deny('', { code: 2 ** 31 }), /32-bit whole number/],
  ['a code with a fraction', () => deny('', { code: 403.5 }), /32-bit whole number/],
  ['a cause without field', () => deny('', { causes: /** @type {any} */ ([{}]) }), /causes\[0\]'s field: must be text/],
  ['a mistyped option', () => allow(/** @type {any} */ ({ warning: [] })), /no option warning/],
  ['a negative time to live', () => allow({ cache: -1 }), /from 0 to/],
  ['a time to live that is none', () => allow({ cache: Number.NaN }), /from 0 to/],
  ['a hint of another kind', () => allow({ cache: /** @type {any} */ ('no-store') }), /NO_STORE, is string/],
  ['a patch that is an object', () => patch(/** @type {any} */ ({})), /must be an array of operations/],
  ['an unknown operation', () => patch(/** @type {any} */ ([{ op: 'put' }])), /patch\[0\]\.op: must be one of add/],
  ['an operation without value', () => patch(/** @type {any} */ ([{ op: 'add', path: '' }])), /add needs value/],
  ['a path without slash', () => patch([{ op: 'remove', path: 'a' }]), /patch\[0\]\.path: must be a JSON Pointer/],
  ['a merge that is an array', () => merge(/** @type {any} */ ([])), /merge: must be a plain object, is an array/],
  ['NaN', () => mutated({ a: Number.NaN }), /NaN and infinities/],
  ['a function', () => merge({ a: () => 1 }), /it holds/],
  ['a Map', () => merge({ a: new Map() }), /it holds Map/],
])) {
  test(`${name} is refused`, () => refused(act, message));
}

test('an object that holds itself is refused', () => {
  const whole = /** @type {any} */ ({});
  whole.whole = whole;
  refused(() => mutated(whole), /nested too deep, or holds itself/);
});

test('undefined members are left out, dates are their text, a bigint is a whole number', () => {
  const value = { a: undefined, b: new Date(0), c: 2n ** 64n };
  assert.equal(merge(value).change?.content, '{"b":"1970-01-01T00:00:00.000Z","c":18446744073709551616}');
});

test('the longest audit key has 63 characters, and NO_STORE is a hint', () => {
  assert.equal(allow({ auditAnnotations: { ['a'.repeat(63)]: '' }, cache: NO_STORE }).cache, NO_STORE);
});

test('pointer escapes tokens', () => {
  assert.equal(pointer('metadata', 'labels', 'a/b~c', 0), '/metadata/labels/a~1b~0c/0');
});
