/** Served workers, policies that a test can delay, and their log. */

import { Log } from 'admission-worker';
import { Client } from './client.js';

/** A log that stores its lines. */
export class KeptLog extends Log {
  /** @type {string[]} */
  lines;

  /** @param {object} [given] */
  constructor(given = {}) {
    /** @type {string[]} */
    const lines = [];
    super({ level: 'debug', ...given, write: line => lines.push(line) });
    this.lines = lines;
  }

  /** All lines. */
  get text() {
    return this.lines.join('');
  }
}

/**
 * A worker that is served until the test ends, and a client of it.
 *
 * @param {import('node:test').TestContext} context
 * @param {import('admission-worker').Worker} worker
 * @param {import('admission-worker').ServeOptions} [options]
 */
export async function connected(context, worker, options = {}) {
  const log = new KeptLog();
  const served = await worker.serve('127.0.0.1:0', { log, ...options });
  const client = new Client(served.address);
  context.after(async () => {
    client.close();
    await served.close();
  });
  return { client, served, log };
}

/** An event that a test awaits or triggers. */
export class Gate {
  constructor() {
    this.open = () => {};
    /** @type {Promise<void>} */
    this.opened = new Promise(resolve => {
      this.open = resolve;
    });
  }
}

/**
 * Policies that a test can delay: `waits` waits for the gate that its document names, or for its signal;
 * `ignores-signal` for its gate alone; `plain` answers at once. Each denies with its document's name.
 *
 * @param {import('admission-worker').Worker} worker
 * @param {typeof import('admission-worker').deny} deny
 */
export function gatesOf(worker, deny) {
  /** @type {Map<string, Gate>} */
  const gates = new Map();
  /** @param {string} name */
  const gate = name => {
    const found = gates.get(name) ?? new Gate();
    gates.set(name, found);
    return found;
  };
  worker.validating('waits', {}, async ({ name = '', signal }) => {
    gate(`begun ${name}`).open();
    const aborted = new Promise((_, reject) => {
      signal.addEventListener('abort', () => {
        gate(`cancelled ${name}`).open();
        reject(signal.reason);
      });
    });
    await Promise.race([gate(name).opened, aborted]);
    return deny(name);
  });
  worker.validating('ignores-signal', {}, async ({ name = '' }) => {
    gate(`begun ${name}`).open();
    await gate(name).opened;
    return deny(name);
  });
  worker.validating('plain', {}, ({ name = 'nameless' }) => deny(name));
  return gate;
}
