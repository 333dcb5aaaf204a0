/**
 * Listening sockets, with one-line errors.
 *
 * A killed worker leaves the file of its Unix socket. So the worker first connects to an existing socket: the file is
 * removed if no process listens on it. (On TCP the kernel reports a port in use: Node.js does not share ports.)
 */

import { lstat, stat, unlink } from 'node:fs/promises';
import net from 'node:net';
import { dirname } from 'node:path';
import tls from 'node:tls';
import { addressText } from './address.js';
import { AddressError } from './errors.js';

/** @typedef {import('./address.js').Address} Address */

/** Milliseconds for a connection to an existing socket; the kernel accepts one within microseconds. */
const PROBE = 1000;

/** Texts for the kernel's error codes. @type {Readonly<Record<string, string>>} */
const REASONS = Object.freeze({
  EADDRINUSE: 'another process listens there; stop it or choose another port',
  EADDRNOTAVAIL: 'this machine has no such address',
  EACCES: 'permission denied',
  ENOTFOUND: 'the host is unknown',
  EAI_AGAIN: 'the host cannot be looked up',
  ENOENT: 'its directory does not exist',
  ENOTDIR: 'its directory is not a directory',
});

/**
 * Listen.
 *
 * @param {Address} address
 * @param {tls.TlsOptions | undefined} secure undefined: without TLS
 * @param {(socket: import('node:stream').Duplex) => void} connected takes each connection
 * @returns {Promise<{ server: net.Server, found: Address }>} `found`: port 0 is replaced by the chosen port
 * @throws {AddressError}
 */
export async function listen(address, secure, connected) {
  if ('path' in address) await makeFree(address);
  const options = { noDelay: true };
  const server =
    secure === undefined
      ? net.createServer(options, connected)
      : tls.createServer({ ...options, ...secure, ALPNProtocols: ['h2'] }, connected);
  await /** @type {Promise<void>} */ (
    new Promise((resolve, reject) => {
      server.once('error', error => reject(refused(address, error)));
      server.listen({ ...address, exclusive: true }, resolve);
    })
  );
  server.removeAllListeners('error');
  const bound = server.address();
  const isPort = 'host' in address && typeof bound === 'object' && bound !== null;
  return { server, found: isPort ? { host: address.host, port: bound.port } : address };
}

/**
 * Remove the file of a Unix socket on which no process listens.
 *
 * @param {{ path: string }} address
 */
async function makeFree(address) {
  const where = addressText(address);
  try {
    const found = await lstat(address.path);
    if (!found.isSocket()) {
      throw new AddressError(`cannot listen on ${where}: the file is no socket; remove it or choose another path`);
    }
    if (await isAnswered(address.path)) {
      throw new AddressError(
        `cannot listen on ${where}: another process listens there; stop it or choose another path`,
      );
    }
    await unlink(address.path);
  } catch (error) {
    if (error instanceof AddressError) throw error;
    if (codeOf(error) !== 'ENOENT') throw refused(address, error);
    // Otherwise Node.js reports "permission denied" for a missing directory.
    await stat(dirname(address.path)).catch(missing => {
      throw refused(address, missing);
    });
  }
}

/**
 * Whether a process listens on a Unix socket. One that does not accept in time, or refuses permission, counts.
 *
 * @param {string} path
 * @returns {Promise<boolean>}
 */
function isAnswered(path) {
  return new Promise(resolve => {
    const probe = net.connect(path);
    /** @param {boolean} answered */
    const end = answered => {
      probe.destroy();
      resolve(answered);
    };
    probe.setTimeout(PROBE, () => end(true));
    probe.once('connect', () => end(true));
    probe.once('error', error => end(!['ECONNREFUSED', 'ENOENT'].includes(codeOf(error))));
  });
}

/**
 * @param {Address} address
 * @param {unknown} error
 * @returns {AddressError}
 */
function refused(address, error) {
  const code = codeOf(error);
  return new AddressError(`cannot listen on ${addressText(address)}: ${REASONS[code] ?? code}`);
}

/** @param {unknown} error */
function codeOf(error) {
  return String(/** @type {NodeJS.ErrnoException} */ (error).code ?? error);
}
