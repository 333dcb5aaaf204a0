/**
 * Certificates for tests: X.509 v3 in DER (RFC 5280), with P-256 keys. Node.js reads certificates but cannot create
 * any, so this module encodes them.
 */

import { generateKeyPairSync, randomBytes, sign } from 'node:crypto';

const ECDSA_WITH_SHA256 = [1, 2, 840, 10045, 4, 3, 2];
const COMMON_NAME = [2, 5, 4, 3];
const BASIC_CONSTRAINTS = [2, 5, 29, 19];
const SUBJECT_ALTERNATIVE_NAME = [2, 5, 29, 17];

const DAY = 24 * 3600 * 1000;

/** @typedef {{ name: string, cert: string, key: string, privateKey: import('node:crypto').KeyObject }} Issued in PEM */

/**
 * A new authority.
 *
 * @param {string} name
 * @returns {Issued}
 */
export function authority(name) {
  return issued(name, undefined);
}

/**
 * A certificate for localhost, also used by clients.
 *
 * @param {string} name
 * @param {Issued} by
 * @returns {Issued}
 */
export function certificate(name, by) {
  return issued(name, by);
}

/** @param {string} name @param {Issued | undefined} by undefined: itself, as an authority */
function issued(name, by) {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const algorithm = sequence(identifier(ECDSA_WITH_SHA256));
  const extensions = by
    ? extension(SUBJECT_ALTERNATIVE_NAME, sequence(tagged(0x82, Buffer.from('localhost'))))
    : extension(BASIC_CONSTRAINTS, sequence(tagged(0x01, Buffer.from([0xff]))));
  const body = sequence(
    tagged(0xa0, tagged(0x02, Buffer.from([2]))), // version 3
    tagged(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    algorithm,
    named(by?.name ?? name),
    sequence(time(Date.now() - DAY), time(Date.now() + DAY)),
    named(name),
    publicKey.export({ type: 'spki', format: 'der' }),
    tagged(0xa3, sequence(extensions)),
  );
  const signature = sign('sha256', body, by?.privateKey ?? privateKey);
  const whole = sequence(body, algorithm, tagged(0x03, Buffer.concat([Buffer.from([0]), signature])));
  const key = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  return { name, cert: pem(whole), key, privateKey };
}

/** @param {number} tag @param {Buffer} content */
function tagged(tag, content) {
  const size = content.length;
  const length = size < 0x80 ? [size] : size < 0x100 ? [0x81, size] : [0x82, size >> 8, size & 0xff];
  return Buffer.concat([Buffer.from([tag, ...length]), content]);
}

/** @param {...Buffer} parts */
function sequence(...parts) {
  return tagged(0x30, Buffer.concat(parts));
}

/** @param {number[]} arcs */
function identifier([first, second, ...rest]) {
  const bytes = rest.flatMap(arc => {
    const groups = [arc & 0x7f];
    for (let left = arc >> 7; left > 0; left >>= 7) groups.unshift((left & 0x7f) | 0x80);
    return groups;
  });
  return tagged(0x06, Buffer.from([first * 40 + second, ...bytes]));
}

/** @param {string} name */
function named(name) {
  return sequence(tagged(0x31, sequence(identifier(COMMON_NAME), tagged(0x0c, Buffer.from(name)))));
}

/** @param {number} at */
function time(at) {
  const text = new Date(at).toISOString().replace(/[-:T]|\.\d+/g, '');
  return tagged(0x17, Buffer.from(text.slice(2)));
}

/** @param {number[]} arcs @param {Buffer} content */
function extension(arcs, content) {
  return sequence(identifier(arcs), tagged(0x04, content));
}

/** @param {Buffer} der */
function pem(der) {
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`;
}
