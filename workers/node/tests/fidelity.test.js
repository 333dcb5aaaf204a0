/** Numbers that a policy does not change are printed with the text that was read. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { entries, jsonOf, mutated, Worker } from 'admission-worker';
import { encoded } from '../src/encoding.js';
import { remember } from '../src/fidelity.js';
import { policyCall, MUTATING } from './client.js';
import { connected } from './serving.js';

const NUMBERS = '[9007199254740993,1.0,1e400,-1e400,-0,-0.0,1E2,0.10,1e-7,12345678901234567890,1.5,7]';

/** @param {string} json @param {{ order?: boolean }} [wanted] */
function read(json, wanted) {
  const value = JSON.parse(json);
  remember(value, json, wanted);
  return value;
}

for (const json of [
  NUMBERS,
  `{"a":${NUMBERS},"b":{"c":${NUMBERS}}}`,
  '{"a":1.0,"a":{"b":2.0},"a":[3.0]}',
  '{"a":{"b":1.0},"a":{"b":2}}',
  String.raw`{"\"\\":1.0,"\u0061":2.0,"x\\":[1.0,"\\\"3.0",{"__proto__":4.0}]}`,
  ' { "a" : [ 1.0 , { "b" : -0 } ] , "c" : "1.0" , "d" : 1.00 } ',
  '{"constructor":1.0,"__proto__":{"a":1.0}}',
  '1.0',
]) {
  test(`${json.slice(0, 40)} is printed as it was read`, () => {
    const wanted = json.replaceAll(' ', '').replace(String.raw`\u0061`, 'a');
    const deduplicated = {
      '{"a":1.0,"a":{"b":2.0},"a":[3.0]}': '{"a":[3.0]}',
      '{"a":{"b":1.0},"a":{"b":2}}': '{"a":{"b":2}}',
    };
    if (json === '1.0') return; // no container: settings and documents are objects
    assert.equal(encoded(read(json), 'it'), deduplicated[/** @type {keyof typeof deduplicated} */ (json)] ?? wanted);
  });
}

test('an assigned number is printed as JavaScript prints it', () => {
  const value = read('{"a":1.0,"b":9007199254740993,"c":[1.0,2.0]}');
  value.a = 2;
  value.b += 2;
  value.c.push(3);
  assert.equal(encoded(value, 'it'), '{"a":2,"b":9007199254740994,"c":[1.0,2.0,3]}');
});

test('members that look like indexes keep their place in settings', () => {
  const settings = read('{"labels":{"b":"x","10":"y","a":"z","2":"w"}}', { order: true });
  assert.deepEqual(
    entries(settings.labels).map(([key]) => key),
    ['b', '10', 'a', '2'],
  );
  assert.equal(encoded(settings, 'it'), '{"labels":{"b":"x","10":"y","a":"z","2":"w"}}');
});

test('jsonOf is the text of a member', () => {
  const value = read('{"a":1.0,"b":[9007199254740993],"c":"\\u00e4\\"","d":{"e":1e400}}');
  assert.equal(jsonOf(value, 'a'), '1.0');
  assert.equal(jsonOf(value.b, 0), '9007199254740993');
  assert.equal(jsonOf(value, 'c'), '"ä\\""');
  assert.equal(jsonOf(value, 'd'), '{"e":1e400}');
  assert.equal(jsonOf(value, 'x'), 'null');
  assert.equal(jsonOf(value, 'constructor'), 'null');
});

/** @type {[string, (object: any) => object, string | RegExp][]} */
const RETURNED = [
  [
    'changed in place',
    object => ({ ...object, label: 'a' }),
    '{"n":9007199254740993,"list":[{"x":1.0},{"x":1e400}],"label":"a"}',
  ],
  ['the same', object => object, '{"n":9007199254740993,"list":[{"x":1.0},{"x":1e400}]}'],
  [
    'an element put in front',
    object => {
      object.list.unshift({ x: 3 });
      return object;
    },
    '{"n":9007199254740993,"list":[{"x":3},{"x":1.0},{"x":1e400}]}',
  ],
  ['a copy with 1e400', structuredClone, /NaN and infinities are no JSON numbers/],
  [
    'a copy',
    ({ n, list: [first] }) => structuredClone({ n, list: [first] }),
    '{"n":9007199254740993,"list":[{"x":1.0}]}',
  ],
  ['a number moved in a copy', ({ n }) => ({ list: [n] }), /moved a number to 0 that JavaScript cannot hold/],
  ['a number replaced', object => ({ ...object, n: 5 }), '{"n":5,"list":[{"x":1.0},{"x":1e400}]}'],
];

for (const [name, change, wanted] of RETURNED) {
  test(`a whole object keeps its numbers over the wire: ${name}`, async context => {
    const worker = new Worker('test', { version: '1' });
    worker.mutating('changes', {}, ({ object }) => mutated(change(object)));
    const { client } = await connected(context, worker);
    const document = Buffer.from('{"object":{"n":9007199254740993,"list":[{"x":1.0},{"x":1e400}]}}');
    const outcome = await client.review(policyCall('changes', { phase: MUTATING, document }));
    if (typeof wanted === 'string') assert.equal(String(outcome.allow?.object), wanted);
    else assert.match(outcome.failure.message, wanted);
  });
}
