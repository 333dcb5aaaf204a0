/** The addresses on which a worker can listen. */

import { AddressError } from './errors.js';

/** The longest path of a Unix socket on Linux: `sun_path` has 108 bytes, the last of which is NUL (unix(7)). */
const SUN_PATH_BYTES = 107;

/** Ports are 16 bits. */
const LAST_PORT = 65_535;

/** @typedef {{ path: string } | { host: string, port: number }} Address a Unix socket's path, or host and port (0: any) */

/**
 * Parse an address.
 *
 * @param {string} text `unix:PATH`, `unix:///ABSOLUTE`, `HOST:PORT` or `[IPv6]:PORT`; a leading `dns:///`, which gRPC
 *   clients need, is removed, so that a client's target can be used as it is
 * @returns {Address}
 * @throws {AddressError} it is none of these
 */
export function parseAddress(text) {
  return text.startsWith('unix:') ? parseUnix(text) : parsePort(text);
}

/**
 * The address as gRPC clients write it: `unix:PATH` or `HOST:PORT`.
 *
 * @param {Address} address
 * @returns {string}
 */
export function addressText(address) {
  if ('path' in address) return `unix:${address.path}`;
  return `${address.host.includes(':') ? `[${address.host}]` : address.host}:${address.port}`;
}

/** @param {string} text */
function parseUnix(text) {
  const shown = JSON.stringify(text);
  let path = text.slice('unix:'.length);
  if (path.startsWith('//')) {
    path = path.slice('//'.length);
    if (!path.startsWith('/')) {
      throw new AddressError(`${shown}: unix:// must be followed by an absolute path, as in unix:///run/worker.sock`);
    }
  }
  const size = Buffer.byteLength(path);
  if (size === 0 || size > SUN_PATH_BYTES || path.includes('\0')) {
    throw new AddressError(
      `${shown}: the path of a Unix socket has 1 to ${SUN_PATH_BYTES} bytes, this one has ${size}`,
    );
  }
  return { path };
}

/** @param {string} text */
function parsePort(text) {
  const shown = JSON.stringify(text);
  const plain = text.replace(/^dns:\/\/\//, '');
  const colon = plain.lastIndexOf(':');
  const port = plain.slice(colon + 1);
  let host = plain.slice(0, Math.max(0, colon));
  if (/^\[.*\]$/.test(host)) {
    host = host.slice(1, -1);
  } else if (host.includes(':')) {
    throw new AddressError(`${shown}: an IPv6 address is written in brackets, as in [::1]:50051`);
  }
  if (host === '' || /[/\s]/.test(host) || !/^[0-9]{1,5}$/.test(port) || Number(port) > LAST_PORT) {
    throw new AddressError(`${shown}: must be HOST:PORT, [IPv6]:PORT or unix:PATH, such as 127.0.0.1:50051`);
  }
  return { host, port: Number(port) };
}
