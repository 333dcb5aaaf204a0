/**
 * The flags of every worker's command. Each has an environment variable: `ADMISSION_WORKER_IN_FLIGHT` for
 * `--in-flight`. A flag overrides its variable.
 */

import { parseArgs } from 'node:util';
import { parseAddress } from './address.js';
import { reasonOf } from './errors.js';
import { DEFAULTS } from './limits.js';
import { FORMATS, LEVELS } from './logs.js';

/** An error of the operator: a wrong flag or variable. The message is one line. */
export class UsageError extends Error {
  /** @override */
  name = 'UsageError';
}

/**
 * @typedef {object} Flag
 * @property {string} value the value's name in the help; `''`: the flag has no value
 * @property {any} default
 * @property {string} help
 * @property {(text: string) => any} read parses the value
 */

/** @param {string} text */
const asItIs = text => text;

/** @param {readonly string[]} choices */
const oneOf = choices => (/** @type {string} */ text) => {
  if (!choices.includes(text)) throw new UsageError(`must be ${choices.join(' or ')}`);
  return text;
};

/** @param {string} text */
const positive = text => {
  const value = Number(text);
  if (!/^[0-9]+$/.test(text) || !Number.isSafeInteger(value) || value < 1) {
    throw new UsageError('must be a whole number of at least 1');
  }
  return value;
};

/** @param {string} text */
const seconds = text => {
  if (!/^[0-9]+(\.[0-9]+)?$/.test(text) || Number(text) > MOST_SECONDS) {
    throw new UsageError(`must be a number of seconds from 0 to ${MOST_SECONDS}`);
  }
  return Number(text);
};

/** A day: no stop takes longer, and Node.js timers are at most 24 days. */
const MOST_SECONDS = 86_400;

/** @param {string} text */
const switched = text => {
  const found = { 1: true, true: true, 0: false, false: false }[text.toLowerCase()];
  if (found === undefined) throw new UsageError('must be 1, true, 0 or false');
  return found;
};

/** @param {string} text */
const address = text => {
  parseAddress(text);
  return text;
};

/** @type {Readonly<Record<string, Flag>>} */
export const FLAGS = Object.freeze({
  listen: {
    value: 'ADDRESS',
    default: '127.0.0.1:50051',
    help: 'HOST:PORT (port 0: any), [::1]:0, unix:PATH or unix:///ABSOLUTE; a leading dns:/// is removed',
    read: address,
  },
  'tls-cert': {
    value: 'FILE',
    default: undefined,
    help: 'PEM file: serve TLS. Read again when it changes',
    read: asItIs,
  },
  'tls-key': { value: 'FILE', default: undefined, help: 'PEM file: the private key of --tls-cert', read: asItIs },
  'client-ca': {
    value: 'FILE',
    default: undefined,
    help: 'PEM file: serve only clients with a certificate of these authorities',
    read: asItIs,
  },
  'log-format': {
    value: FORMATS.join('|'),
    default: 'text',
    help: 'the format of log lines',
    read: oneOf(FORMATS),
  },
  'log-level': {
    value: LEVELS.join('|'),
    default: 'info',
    help: 'the lowest level that is logged',
    read: oneOf(LEVELS),
  },
  'in-flight': {
    value: 'COUNT',
    default: DEFAULTS.inFlight,
    help: 'concurrent calls; more are refused',
    read: positive,
  },
  'message-bytes': {
    value: 'COUNT',
    default: DEFAULTS.messageBytes,
    help: 'the largest message, received or sent',
    read: positive,
  },
  'grace-period': {
    value: 'SECONDS',
    default: DEFAULTS.gracePeriod,
    help: 'for open calls after a signal to stop',
    read: seconds,
  },
  conformance: { value: '', default: false, help: 'add the probe policies of the conformance kit', read: switched },
});

/**
 * Read flags and variables.
 *
 * @param {readonly string[]} args
 * @param {Readonly<Record<string, string | undefined>>} environment
 * @returns {Record<string, any>} values by flag name, and `help`
 * @throws {UsageError}
 */
export function readFlags(args, environment) {
  const given = parsed(args);
  /** @type {Record<string, any>} */
  const values = { help: given.help === true };
  for (const [name, flag] of Object.entries(FLAGS)) {
    const variable = variableOf(name);
    // An empty variable counts as not set: a manifest cannot unset one.
    const written = given[name] ?? (environment[variable] || undefined);
    const where = given[name] === undefined ? variable : `--${name}`;
    values[name] = typeof written === 'string' ? readOne(flag, written, where) : (written ?? flag.default);
  }
  if ((values['tls-cert'] === undefined) !== (values['tls-key'] === undefined)) {
    throw new UsageError('--tls-cert and --tls-key go together: give both, or none');
  }
  if (values['client-ca'] !== undefined && values['tls-cert'] === undefined) {
    throw new UsageError('--client-ca needs --tls-cert and --tls-key');
  }
  return values;
}

/**
 * The help: a line for each flag.
 *
 * @returns {string}
 */
export function flagsHelp() {
  const lines = Object.entries(FLAGS).map(([name, flag]) => {
    const shown = flag.default === undefined || flag.default === false ? '' : ` (default ${flag.default})`;
    return `  ${`--${name} ${flag.value}`.trimEnd()}\n      ${flag.help}${shown} [${variableOf(name)}]`;
  });
  return `${lines.join('\n')}\n  -h, --help\n      this list`;
}

/** @param {string} name of a flag */
function variableOf(name) {
  return `ADMISSION_WORKER_${name.toUpperCase().replaceAll('-', '_')}`;
}

/**
 * @param {readonly string[]} args
 * @returns {Record<string, string | boolean | undefined>}
 */
function parsed(args) {
  const described = Object.entries(FLAGS).map(([name, flag]) => [
    name,
    { type: flag.value === '' ? 'boolean' : 'string' },
  ]);
  try {
    const options = { ...Object.fromEntries(described), help: { type: 'boolean', short: 'h' } };
    return /** @type {any} */ (parseArgs({ args: [...args], options, allowPositionals: false }).values);
  } catch (error) {
    throw new UsageError(reasonOf(error));
  }
}

/**
 * @param {Flag} flag
 * @param {string} written
 * @param {string} where
 */
function readOne(flag, written, where) {
  try {
    return flag.read(written);
  } catch (error) {
    throw new UsageError(`${where}: ${reasonOf(error)}, is ${JSON.stringify(written)}`);
  }
}
