/**
 * The worker's certificate, its key, and the authorities of its clients, from PEM files.
 *
 * They are read again when they change: Kubernetes renews them in place, by exchanging a symbolic link, which only a
 * look at the files finds reliably. What cannot be used (half of a pair, while it is being exchanged) is logged, and
 * what was used stays.
 */

import { X509Certificate } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import tls from 'node:tls';
import { CertificateError, reasonOf } from './errors.js';

/**
 * Where they are.
 *
 * @typedef {object} TlsFiles
 * @property {string} cert the certificate, and those of the authorities between it and the root
 * @property {string} key its private key
 * @property {string} [clientCa] the authorities whose clients are served, and no others; default: any client
 */

/** Milliseconds between two looks at the files: a look costs microseconds, and kubelet takes a minute to bring them. */
const LOOK = 1000;

const PEM = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** Reads the files, and watches them. */
export class Certificates {
  #files;
  #log;
  #seen = '';
  #isLooking = false;
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
   * What a TLS server needs.
   *
   * @returns {Promise<tls.TlsOptions>}
   * @throws {CertificateError} they cannot be used
   */
  async load() {
    this.#seen = await this.#state();
    return this.#read();
  }

  /**
   * Look for changes until `close`.
   *
   * @param {(options: tls.TlsOptions) => void} changed takes what can be used
   */
  watch(changed) {
    this.#timer = setInterval(() => void this.#look(changed), LOOK);
    this.#timer.unref();
  }

  /** Look no more. */
  close() {
    clearInterval(this.#timer);
  }

  /** @param {(options: tls.TlsOptions) => void} changed */
  async #look(changed) {
    if (this.#isLooking) return;
    this.#isLooking = true;
    try {
      const state = await this.#state();
      if (state === this.#seen) return;
      this.#seen = state;
      changed(await this.#read());
      this.#log.info(`the certificate was read again from ${this.#files.cert}`);
    } catch (error) {
      this.#log.error(`${reasonOf(error)}; the one that was in use stays`);
    } finally {
      this.#isLooking = false;
    }
  }

  /** When the files changed last, and which they are. */
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
