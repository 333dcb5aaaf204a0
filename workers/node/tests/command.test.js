/** The command, as a process: its address, its log and its exit code. */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { readFlags } from '../src/flags.js';
import { policyCall, Client, PATIENCE } from './client.js';

const PROGRAM = fileURLToPath(new URL('programs/worker.js', import.meta.url));
const SAMPLES = fileURLToPath(new URL('../samples/main.js', import.meta.url));

/** @param {import('node:test').TestContext} context */
function folder(context) {
  const path = mkdtempSync(join(tmpdir(), 'worker-'));
  context.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/**
 * A worker as a process, killed at the test's end if it still runs.
 *
 * @param {import('node:test').TestContext} context
 * @param {string[]} args
 * @param {{ program?: string, env?: Record<string, string> }} [given]
 */
function started(context, args, { program = PROGRAM, env = {} } = {}) {
  const process_ = spawn(process.execPath, [program, ...args], { env: { PATH: process.env.PATH, ...env } });
  context.after(() => process_.kill('SIGKILL'));
  let log = '';
  let output = '';
  process_.stderr.on('data', text => {
    log += text;
  });
  process_.stdout.on('data', text => {
    output += text;
  });
  const exited = once(process_, 'close').then(([code]) => code);
  return {
    process: process_,
    exited,
    log: () => log,
    output: () => output,
    /** Wait for a line of the log. @param {RegExp} wanted */
    async logged(wanted) {
      const signal = AbortSignal.timeout(PATIENCE);
      for (;;) {
        const found = wanted.exec(log);
        if (found) return found;
        const ended = await Promise.race([once(process_.stderr, 'data', { signal }), exited]);
        assert.ok(Array.isArray(ended) || wanted.test(log), `it ended without logging ${wanted}:\n${log}`);
      }
    },
  };
}

const LISTENS = /worker (\S+) (\S+) listens on (\S+); policies: (.*)\n/;

test('it logs its address once, and exits 0 on a signal', async context => {
  for (const signal of /** @type {const} */ (['SIGTERM', 'SIGINT'])) {
    const worker = started(context, ['--listen', '127.0.0.1:0']);
    const [, name, version, address, policies] = await worker.logged(LISTENS);
    assert.deepEqual([name, version, policies], ['program', '1.0.0', 'plain, stray']);
    assert.match(address, /^127\.0\.0\.1:[1-9]/);
    const client = new Client(address);
    assert.equal((await client.review(policyCall('plain'))).deny.message, 'plain');
    client.close();
    worker.process.kill(signal);
    assert.equal(await worker.exited, 0);
    assert.equal(worker.log().match(/listens on/g)?.length, 1);
  }
});

test('--conformance adds the probes to the samples', async context => {
  const socket = join(folder(context), 'w.sock');
  const worker = started(context, ['--listen', `unix://${socket}`, '--conformance'], { program: SAMPLES });
  const [, name, version, address, policies] = await worker.logged(LISTENS);
  assert.deepEqual([name, version, address], ['samples', '0.1.0', `unix:${socket}`]);
  assert.match(policies, /^default-labels, .*, sidecar, probe-answer, .*probe-version$/);
  worker.process.kill();
  assert.equal(await worker.exited, 0);
});

test('a second signal ends it at once, with 1', async context => {
  const worker = started(context, ['--listen', '127.0.0.1:0', '--grace-period', '60']);
  const [, , , address] = await worker.logged(LISTENS);
  const client = new Client(address);
  client.review(policyCall('stray')).catch(() => {});
  await worker.logged(/unhandled promise rejection/);
  worker.process.kill();
  await worker.logged(/stopping/);
  worker.process.kill();
  assert.equal(await worker.exited, 1);
  client.close();
});

test('unhandled rejections and uncaught exceptions are logged, and the worker continues', async context => {
  const worker = started(context, ['--listen', '127.0.0.1:0', '--log-format', 'json']);
  const [, , , address] = await worker.logged(/worker (\S+) (\S+) listens on (\S+); policies/);
  const client = new Client(address);
  client.review(policyCall('stray')).catch(() => {});
  await worker.logged(/unhandled promise rejection/);
  await worker.logged(/uncaught exception/);
  assert.equal((await client.review(policyCall('plain'))).deny.message, 'plain');
  client.close();
  for (const line of worker.log().trim().split('\n')) {
    const { time, level, message } = JSON.parse(line);
    assert.ok(!Number.isNaN(Date.parse(time)) && level && message, line);
  }
});

test('supervised, it stops when its standard input ends', async context => {
  const worker = started(context, ['--listen', '127.0.0.1:0'], { env: { ADMISSION_WORKER_SUPERVISED: '1' } });
  await worker.logged(LISTENS);
  worker.process.stdin.end();
  assert.equal(await worker.exited, 0);
  assert.match(worker.log(), /standard input has ended/);
});

test('the socket of a killed worker is replaced, that of a running one is not', async context => {
  const listen = `unix:${join(folder(context), 'w.sock')}`;
  const first = started(context, ['--listen', listen]);
  await first.logged(LISTENS);
  const second = started(context, ['--listen', listen]);
  assert.equal(await second.exited, 1);
  assert.match(second.log(), /another process listens there/);
  first.process.kill('SIGKILL');
  await first.exited;
  await started(context, ['--listen', listen]).logged(LISTENS);
});

for (const [what, args, message] of /** @type {[string, (path: string) => string[], RegExp][]} */ ([
  ['a file that is no socket', path => ['--listen', `unix:${path}/file`], /the file is no socket/],
  ['no directory', path => ['--listen', `unix:${path}/none/w.sock`], /its directory does not exist/],
  ['an address of another machine', () => ['--listen', '192.0.2.1:0'], /this machine has no such address/],
  [
    'no certificate',
    path => ['--tls-cert', `${path}/file`, '--tls-key', `${path}/file`],
    /holds no certificate \(PEM\)/,
  ],
  ['a missing file', path => ['--tls-cert', `${path}/none`, '--tls-key', `${path}/file`], /none cannot be read/],
])) {
  test(`${what}: exit code 1, and one line`, async context => {
    const path = folder(context);
    writeFileSync(join(path, 'file'), 'text');
    const worker = started(context, args(path));
    assert.equal(await worker.exited, 1);
    assert.match(worker.log(), message);
    assert.equal(worker.log().trim().split('\n').length, 1);
  });
}

for (const [args, env, message] of /** @type {[string[], Record<string, string>, RegExp][]} */ ([
  [['--lisen', 'a'], {}, /'--lisen'/],
  [['serve'], {}, /serve/],
  [['--listen', 'nowhere'], {}, /--listen: "nowhere": must be HOST:PORT/],
  [['--in-flight', '0'], {}, /--in-flight: must be a whole number of at least 1, is "0"/],
  [[], { ADMISSION_WORKER_IN_FLIGHT: 'many' }, /ADMISSION_WORKER_IN_FLIGHT: must be a whole number/],
  [['--grace-period', '-1'], {}, /grace-period/],
  [['--log-level', 'loud'], {}, /must be debug or info or warning or error, is "loud"/],
  [['--tls-cert', 'a'], {}, /--tls-cert and --tls-key go together/],
  [['--client-ca', 'a'], {}, /--client-ca needs --tls-cert/],
])) {
  test(`${JSON.stringify([args, env])} is a wrong usage: exit code 2, and one line`, async context => {
    const worker = started(context, args, { env });
    assert.equal(await worker.exited, 2);
    assert.match(worker.log(), message);
    assert.equal(worker.log().trim().split('\n').length, 1);
  });
}

test('--help lists every flag, and exits 0', async context => {
  const worker = started(context, ['--help']);
  assert.equal(await worker.exited, 0);
  for (const flag of ['listen', 'tls-cert', 'client-ca', 'in-flight', 'conformance']) {
    assert.match(worker.output(), new RegExp(`--${flag}\\b`));
  }
});

test('a flag overrides its variable, an empty variable counts as not set', () => {
  const variables = { ADMISSION_WORKER_IN_FLIGHT: '5', ADMISSION_WORKER_LISTEN: '', ADMISSION_WORKER_CONFORMANCE: '1' };
  const flags = readFlags(['--in-flight=7'], variables);
  assert.deepEqual([flags['in-flight'], flags.listen, flags.conformance], [7, '127.0.0.1:50051', true]);
  assert.equal(readFlags([], variables)['in-flight'], 5);
});
