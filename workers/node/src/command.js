/**
 * The worker's command: flags, signals, and the stop when its supervisor exits.
 *
 * Exit code 0: stopped by SIGTERM or SIGINT; 1: the worker could not listen, or a certificate cannot be used; 2: a
 * wrong flag or variable. A second signal ends it at once, with 1.
 *
 * Started by a gateway (`ADMISSION_WORKER_SUPERVISED=1`), it also stops when its standard input ends: the gateway
 * holds the other end and writes nothing, so the end means that the gateway has exited, even by SIGKILL. Otherwise an
 * orphaned worker would keep the socket.
 *
 * An unhandled rejection of a policy's promise, or an error thrown in one of its timers, would end a Node.js process.
 * Here it is logged, and a call that depends on it times out: an error in one policy must not stop the others.
 */

import { AddressError, CertificateError } from './errors.js';
import { flagsHelp, readFlags, UsageError } from './flags.js';
import { Log } from './logs.js';
import { exportSpans } from './tracing.js';

/** @typedef {import('./worker.js').Worker} Worker */

const SUPERVISED = 'ADMISSION_WORKER_SUPERVISED';

/** Exit codes. */
const STOPPED = 0;
const NOT_SERVED = 1;
const WRONG_USAGE = 2;

/**
 * Serve until a signal stops the worker, and end the process.
 *
 * @param {Worker} worker
 * @param {readonly string[]} args
 * @returns {Promise<never>}
 */
export async function runCommand(worker, args) {
  let flags;
  try {
    flags = readFlags(args, process.env);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    process.stderr.write(`${worker.name}: ${error.message}; --help lists the flags\n`);
    process.exit(WRONG_USAGE);
  }
  if (flags.help) {
    const names = [...worker.policies.keys()].join(', ') || 'none';
    process.stdout.write(
      `Serve the policies of worker ${worker.name} ${worker.version}: ${names}.\n\n${flagsHelp()}\n`,
    );
    process.exit(STOPPED);
  }
  const log = new Log({ format: flags['log-format'], level: flags['log-level'] });
  try {
    await serve(worker, flags, log);
  } catch (error) {
    if (!(error instanceof AddressError || error instanceof CertificateError)) throw error;
    log.error(error.message);
    process.exit(NOT_SERVED);
  }
  // Timers or connections that a policy left open would keep Node.js running.
  process.exit(STOPPED);
}

/**
 * @param {Worker} worker
 * @param {Record<string, any>} flags
 * @param {Log} log
 */
async function serve(worker, flags, log) {
  process.on('unhandledRejection', error => log.error('unhandled promise rejection', { error }));
  process.on('uncaughtException', error => log.error('uncaught exception', { error }));
  // Before it listens: a signal may follow the log line at once.
  const stop = whenSignalled(log);
  const served = await worker.serve(flags.listen, {
    limits: {
      inFlight: flags['in-flight'],
      messageBytes: flags['message-bytes'],
      gracePeriod: flags['grace-period'],
    },
    tls: flags['tls-cert'] && { cert: flags['tls-cert'], key: flags['tls-key'], clientCa: flags['client-ca'] },
    conformance: flags.conformance,
    log,
  });
  const names = [...served.policies].join(', ') || 'none';
  log.info(`worker ${worker.name} ${worker.version} listens on ${served.address}; policies: ${names}`);
  await Promise.race(process.env[SUPERVISED] === '1' ? [stop, whenInputEnds(log)] : [stop]);
  log.info(`stopping: open calls have ${flags['grace-period']} s`);
  await served.close();
  await exportSpans(log);
  log.info('stopped');
}

/**
 * @param {Log} log
 * @returns {Promise<void>}
 */
function whenSignalled(log) {
  return new Promise(resolve => {
    let isStopping = false;
    /** @param {NodeJS.Signals} signal */
    const signalled = signal => {
      if (isStopping) {
        log.warning(`${signal} again: ending at once`);
        process.exit(NOT_SERVED);
      }
      isStopping = true;
      log.info(`${signal} received`);
      resolve();
    };
    process.on('SIGTERM', signalled);
    process.on('SIGINT', signalled);
  });
}

/**
 * @param {Log} log
 * @returns {Promise<void>}
 */
function whenInputEnds(log) {
  return new Promise(resolve => {
    const ended = () => {
      log.info('standard input has ended: the parent process is gone');
      resolve();
    };
    process.stdin.once('end', ended);
    process.stdin.on('error', ended);
    process.stdin.resume();
  });
}
