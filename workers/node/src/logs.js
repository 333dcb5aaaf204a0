/**
 * The worker's log: one line for each event on standard error, for people or as JSON.
 *
 * The gateway that started the worker, or the container runtime, collects standard error. Uids are logged, documents
 * never.
 */

export const FORMATS = Object.freeze(['text', 'json']);
export const LEVELS = Object.freeze(['debug', 'info', 'warning', 'error']);

/**
 * What an event is about.
 *
 * @typedef {object} Fields
 * @property {string} [uid] of the AdmissionRequest
 * @property {string} [policy]
 * @property {unknown} [error] what was thrown; its stack is logged
 */

/** The log. */
export class Log {
  #format;
  #from;
  #write;

  /**
   * @param {object} [given]
   * @param {string} [given.format] one of FORMATS
   * @param {string} [given.level] one of LEVELS: the lowest that is written
   * @param {(line: string) => void} [given.write] called with one line, or several if there is a stack
   */
  constructor({ format = 'text', level = 'info', write = line => void process.stderr.write(line) } = {}) {
    this.#format = format;
    this.#from = LEVELS.indexOf(level);
    this.#write = write;
  }

  /** @param {string} message @param {Fields} [fields] */
  debug(message, fields) {
    this.#log('debug', message, fields);
  }

  /** @param {string} message @param {Fields} [fields] */
  info(message, fields) {
    this.#log('info', message, fields);
  }

  /** @param {string} message @param {Fields} [fields] */
  warning(message, fields) {
    this.#log('warning', message, fields);
  }

  /** @param {string} message @param {Fields} [fields] */
  error(message, fields) {
    this.#log('error', message, fields);
  }

  /**
   * @param {string} level
   * @param {string} message
   * @param {Fields} [fields]
   */
  #log(level, message, { uid, policy, error } = {}) {
    if (LEVELS.indexOf(level) < this.#from) return;
    const time = new Date().toISOString();
    const exception = error === undefined ? undefined : stackOf(error);
    if (this.#format === 'json') {
      this.#write(`${JSON.stringify({ time, level, message, uid: uid || undefined, policy, exception })}\n`);
      return;
    }
    const about = uid ? ` (uid ${uid})` : '';
    // Names come from the client: a line break in one must not look like another event.
    const line = `${time} ${level.toUpperCase()} ${message}${about}`.replace(/[\r\n]+/g, ' ');
    this.#write(exception === undefined ? `${line}\n` : `${line}\n${exception}\n`);
  }
}

/**
 * @param {unknown} error whatever was thrown
 * @returns {string}
 */
function stackOf(error) {
  if (error instanceof Error && typeof error.stack === 'string') return error.stack;
  try {
    return String(error);
  } catch {
    return 'an error without text';
  }
}
