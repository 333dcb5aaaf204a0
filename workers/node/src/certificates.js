/**
 * The worker's certificate, its key, and the authorities of its clients, from PEM files.
 *
 * The files are polled and read again when they change: Kubernetes renews them by replacing a symbolic link, which file
 * notifications do not report reliably. Files that cannot be used (such as half of a new pair) are logged, and the
 * previous certificate stays in use.
 */

import { X509Certificate } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import tls from 'node:tls';
import { CertificateError, reasonOf } from './errors.js';

/**
 * The paths of the PEM files.
 *
 * @typedef {object} TlsFiles
 * @property {string} cert the certificate, followed by its intermediate authorities
 * @property {string} key its private key
 * @property {string} [clientCa] the authorities of client certificates; only their clients are served. Default: all
 *   clients are served
 */

/** Milliseconds between two polls of the files: a poll takes microseconds, and kubelet a minute to update a volume. */
const POLL_INTERVAL = 1000;

const PEM = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** Reads the files, and watches them. */
export class Certificates {
  #files;
  #log;
  #seen = '';
  #isPolling = false;
  /** @type {NodeJS.Timeout | undefined} */
  #timer;

  /**
   * @param {TlsFiles} files
   * @param {import('./logs.js').Log} log
   */
  constructor(files, log) {
    this.#files = files;
    this.#log = log;
  }

  /**
   * The options of a TLS server.
   *
   * @returns {Promise<tls.TlsOptions>}
   * @throws {CertificateError} they cannot be used
   */
  async load() {
    this.#seen = await this.#state();
    return this.#read();
  }

  /**
   * Poll the files until `close`.
   *
   * @param {(options: tls.TlsOptions) => void} changed called with each new valid certificate
   */
  watch(changed) {
    this.#timer = setInterval(() => void this.#poll(changed), POLL_INTERVAL);
    this.#timer.unref();
  }

  /** Stop polling. */
  close() {
    clearInterval(this.#timer);
  }

  /** @param {(options: tls.TlsOptions) => void} changed */
  async #poll(changed) {
    if (this.#isPolling) return;
    this.#isPolling = true;
    try {
      const state = await this.#state();
      if (state === this.#seen) return;
      this.#seen = state;
      changed(await this.#read());
      this.#log.info(`the certificate was read again from ${this.#files.cert}`);
    } catch (error) {
      this.#log.error(`${reasonOf(error)}; the previous certificate stays in use`);
    } finally {
      this.#isPolling = false;
    }
  }

  /** Identity, size and modification time of the files. */
  async #state() {
    const states = this.#paths().map(async path => {
      const found = await stat(path, { bigint: true }).catch(() => undefined);
      return found ? `${found.dev}:${found.ino}:${found.size}:${found.mtimeNs}` : 'missing';
    });
    return (await Promise.all(states)).join(' ');
  }

  #paths() {
    const { cert, key, clientCa } = this.#files;
    return clientCa === undefined ? [cert, key] : [cert, key, clientCa];
  }

  /** @returns {Promise<tls.TlsOptions>} */
  async #read() {
    const { cert: certFile, key: keyFile, clientCa } = this.#files;
    const [cert, key, ca] = await Promise.all(this.#paths().map(readPem));
    checkCertificates(cert, certFile);
    if (clientCa !== undefined) checkCertificates(ca, clientCa);
    /** @type {tls.SecureContextOptions} */
    const context = { cert, key, minVersion: 'TLSv1.2', ...(clientCa === undefined ? {} : { ca }) };
    try {
      tls.createSecureContext(context);
    } catch (error) {
      throw new CertificateError(
        `the certificate ${certFile} cannot be used with the key ${keyFile}: ${reasonOf(error)}`,
      );
    }
    return { ...context, requestCert: clientCa !== undefined, rejectUnauthorized: clientCa !== undefined };
  }
}

/**
 * @param {string} path
 * @returns {Promise<string>}
 */
async function readPem(path) {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw new CertificateError(`${path} cannot be read: ${reasonOf(error)}`);
  }
}

/**
 * @param {string} pem
 * @param {string} path
 */
function checkCertificates(pem, path) {
  const found = pem.match(PEM);
  if (found === null) throw new CertificateError(`${path} holds no certificate (PEM)`);
  for (const one of found) {
    try {
      new X509Certificate(one);
    } catch (error) {
      throw new CertificateError(`${path} holds a certificate that cannot be read: ${reasonOf(error)}`);
    }
  }
}
