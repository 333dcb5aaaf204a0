/** TLS and mTLS: who is served, and certificates that are exchanged while serving. */

import assert from 'node:assert/strict';
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import tls from 'node:tls';
import grpc from '@grpc/grpc-js';
import { CertificateError, deny, Worker } from 'admission-worker';
import { authority, certificate } from './certificates.js';
import { policyCall, Client, PATIENCE } from './client.js';
import { KeptLog } from './serving.js';

const OURS = authority('ours');
const OTHERS = authority('others');

/**
 * A worker with a certificate of ours.
 *
 * @param {import('node:test').TestContext} context
 * @param {{ clientCa?: string }} [given]
 */
async function secured(context, { clientCa } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'worker-'));
  const files = { cert: join(folder, 'tls.crt'), key: join(folder, 'tls.key'), clientCa: join(folder, 'ca.crt') };
  const own = certificate('worker', OURS);
  writeFileSync(files.cert, own.cert);
  writeFileSync(files.key, own.key);
  if (clientCa !== undefined) writeFileSync(files.clientCa, clientCa);
  const log = new KeptLog();
  const worker = new Worker('test', { version: '1' }).validating('plain', {}, () => deny('plain'));
  const served = await worker.serve('127.0.0.1:0', {
    log,
    tls: clientCa === undefined ? { cert: files.cert, key: files.key } : files,
  });
  context.after(async () => {
    await served.close();
    rmSync(folder, { recursive: true });
  });
  return { files, log, port: Number(served.address.split(':')[1]), served };
}

/**
 * The answer to a client with these credentials.
 *
 * @param {number} port
 * @param {import('./certificates.js').Issued} trusted
 * @param {import('./certificates.js').Issued} [own]
 */
async function answerFor(port, trusted, own) {
  const credentials = grpc.credentials.createSsl(
    Buffer.from(trusted.cert),
    own ? Buffer.from(own.key) : null,
    own ? Buffer.from(own.cert) : null,
  );
  const client = new Client(`127.0.0.1:${port}`, credentials, { 'grpc.ssl_target_name_override': 'localhost' });
  try {
    return (await client.review(policyCall('plain'))).deny.message;
  } finally {
    client.close();
  }
}

test('it serves TLS to clients that trust its authority', async context => {
  const { port } = await secured(context);
  assert.equal(await answerFor(port, OURS), 'plain');
  await assert.rejects(answerFor(port, OTHERS), { code: grpc.status.UNAVAILABLE });
});

test('a client without TLS is not served', async context => {
  const { served, port } = await secured(context);
  const client = new Client(served.address);
  await assert.rejects(client.review(policyCall('plain'), { patience: 2000 }));
  client.close();
  assert.equal(await answerFor(port, OURS), 'plain');
});

test('TLS 1.2 is served, older versions are not', async context => {
  const { port } = await secured(context);
  /** @param {tls.SecureVersion} version */
  const connect = version =>
    new Promise((resolve, reject) => {
      const options = { port, host: '127.0.0.1', ca: OURS.cert, servername: 'localhost', ALPNProtocols: ['h2'] };
      const oldest = { minVersion: /** @type {const} */ ('TLSv1'), maxVersion: version, ciphers: 'DEFAULT@SECLEVEL=0' };
      const socket = tls.connect({ ...options, ...oldest }, () => {
        resolve(socket.getProtocol());
        socket.destroy();
      });
      socket.once('error', reject);
    });
  assert.equal(await connect('TLSv1.2'), 'TLSv1.2');
  await assert.rejects(connect('TLSv1.1'));
});

test('with client authorities, only clients with their certificates are served', async context => {
  const { port } = await secured(context, { clientCa: OURS.cert });
  assert.equal(await answerFor(port, OURS, certificate('gateway', OURS)), 'plain');
  await assert.rejects(answerFor(port, OURS));
  await assert.rejects(answerFor(port, OURS, certificate('gateway', OTHERS)));
});

/** Wait for a condition. @param {() => boolean} noticed @param {string} what */
async function until(noticed, what) {
  const end = performance.now() + PATIENCE;
  while (!noticed()) {
    assert.ok(performance.now() < end, what);
    await new Promise(resolve => setImmediate(resolve));
  }
}

test('a new certificate is used without a restart; an invalid one is logged, and the old one stays', async context => {
  const { port, files, log } = await secured(context);
  writeFileSync(files.cert, 'half a certifi');
  await until(() => /holds no certificate \(PEM\); the previous certificate stays in use/.test(log.text), log.text);
  assert.equal(await answerFor(port, OURS), 'plain');
  const renewed = certificate('worker', OTHERS);
  writeFileSync(`${files.key}.new`, renewed.key);
  renameSync(`${files.key}.new`, files.key);
  writeFileSync(`${files.cert}.new`, renewed.cert);
  renameSync(`${files.cert}.new`, files.cert);
  await until(() => /the certificate was read again/.test(log.text), log.text);
  assert.equal(await answerFor(port, OTHERS), 'plain');
  await assert.rejects(answerFor(port, OURS));
});

test('a certificate that does not match the key is an error at startup', async context => {
  const { files } = await secured(context);
  writeFileSync(files.key, certificate('another', OURS).key);
  const worker = new Worker('test', { version: '1' });
  await assert.rejects(worker.serve('127.0.0.1:0', { tls: { cert: files.cert, key: files.key } }), CertificateError);
});

test('garbage and HTTP/1.1 end only their own connection', async context => {
  const worker = new Worker('test', { version: '1' }).validating('plain', {}, () => deny('plain'));
  const served = await worker.serve('127.0.0.1:0', { log: new KeptLog() });
  const client = new Client(served.address);
  context.after(async () => {
    client.close();
    await served.close();
  });
  for (const garbage of ['GET / HTTP/1.1\r\nHost: a\r\n\r\n', 'x'.repeat(10_000), '\x16\x03\x01\x00\x05hello']) {
    const socket = net.connect(Number(served.address.split(':')[1]), '127.0.0.1');
    socket.on('error', () => {});
    socket.resume();
    const closed = new Promise(resolve => socket.once('close', resolve));
    socket.end(garbage);
    await closed;
    assert.equal((await client.review(policyCall('plain'))).deny.message, 'plain');
  }
});
