/**
 * Whose fault it was. Each of these becomes a failure, a settings error or one line at the start: never a crash and
 * never a verdict.
 */

/**
 * The gateway's fault: the document is no JSON object, or a member of it is not what an AdmissionRequest holds there.
 * The message is safe to show: it holds positions and types, never values.
 */
export class InvalidDocumentError extends Error {
  /** @override */
  name = 'InvalidDocumentError';
}

/**
 * The policy author's fault: an answer that cannot mean anything, such as a warning that is no text. The message is
 * safe to show: it holds names and types, never values.
 */
export class InvalidAnswerError extends TypeError {
  /** @override */
  name = 'InvalidAnswerError';
}

/** The policy author's fault: a policy that cannot be registered. Nothing is served until all are sound. */
export class RegistrationError extends Error {
  /** @override */
  name = 'RegistrationError';
}

/** The operator's fault: the address cannot be listened on. The message is one line. */
export class AddressError extends Error {
  /** @override */
  name = 'AddressError';
}

/** The operator's fault: a certificate, a key or an authority cannot be used. The message is one line. */
export class CertificateError extends Error {
  /** @override */
  name = 'CertificateError';
}

/** One thing that is wrong with settings. A plain value, and nothing to throw: all of them are told at once. */
export class SettingsError {
  /**
   * @param {string} pointer where, as a JSON Pointer over the settings, such as `/labels/team`; `''`: as a whole
   * @param {string} message what is expected and what was found, in one sentence
   */
  constructor(pointer, message) {
    this.pointer = pointer;
    this.message = message;
    Object.freeze(this);
  }

  /** `/labels/team: must be ...`. */
  toString() {
    return this.pointer ? `${this.pointer}: ${this.message}` : this.message;
  }
}

/** What the operator should know about settings that are accepted, such as a deprecated member. */
export class SettingsWarning {
  /** @param {string} message one sentence */
  constructor(message) {
    this.message = message;
    Object.freeze(this);
  }
}

/** The operator's fault: all that is wrong with a policy's settings. */
export class InvalidSettingsError extends Error {
  /** @override */
  name = 'InvalidSettingsError';

  /**
   * @param {readonly SettingsError[]} errors one for each thing that is wrong; never empty
   * @param {ErrorOptions} [options] `cause`: what the author's own check threw
   */
  constructor(errors, options) {
    super(errors.join('; '), options);
    this.errors = Object.freeze([...errors]);
  }
}

/**
 * What went wrong below us, in the words of whoever says it, on one line.
 *
 * @param {unknown} error whatever was thrown
 * @returns {string}
 */
export function reasonOf(error) {
  const text = error instanceof Error ? error.message : String(error);
  return text.replace(/\s+/g, ' ');
}
