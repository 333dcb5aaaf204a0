/**
 * Error types, by who has to correct the cause. Each becomes a failure, a settings error or one line at startup: never
 * a crash and never a verdict.
 */

/**
 * An error of the gateway: the document is not a JSON object, or a member has another type than in an AdmissionRequest.
 * The message is safe to show: it contains positions and types, never values.
 */
export class InvalidDocumentError extends Error {
  /** @override */
  name = 'InvalidDocumentError';
}

/**
 * An error of the policy's author: an invalid answer, such as a warning that is not text. The message is safe to show:
 * it contains names and types, never values.
 */
export class InvalidAnswerError extends TypeError {
  /** @override */
  name = 'InvalidAnswerError';
}

/** An error of the policy's author: the policy cannot be registered, and the worker does not serve. */
export class RegistrationError extends Error {
  /** @override */
  name = 'RegistrationError';
}

/** An error of the operator: the worker cannot listen on the address. The message is one line. */
export class AddressError extends Error {
  /** @override */
  name = 'AddressError';
}

/** An error of the operator: a certificate, a key or an authority cannot be used. The message is one line. */
export class CertificateError extends Error {
  /** @override */
  name = 'CertificateError';
}

/** One error in settings. A value, not an exception: all errors are reported at once. */
export class SettingsError {
  /**
   * @param {string} pointer a JSON Pointer over the settings, such as `/labels/team`; `''`: the settings as a whole
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

/** A warning about settings that are accepted, such as a deprecated member. */
export class SettingsWarning {
  /** @param {string} message one sentence */
  constructor(message) {
    this.message = message;
    Object.freeze(this);
  }
}

/** An error of the operator: all errors in a policy's settings. */
export class InvalidSettingsError extends Error {
  /** @override */
  name = 'InvalidSettingsError';

  /**
   * @param {readonly SettingsError[]} errors never empty
   * @param {ErrorOptions} [options] `cause`: the error that the author's own check threw
   */
  constructor(errors, options) {
    super(errors.join('; '), options);
    this.errors = Object.freeze([...errors]);
  }
}

/**
 * The message of an error that a library or the system threw, on one line.
 *
 * @param {unknown} error whatever was thrown
 * @returns {string}
 */
export function reasonOf(error) {
  const text = error instanceof Error ? error.message : String(error);
  return text.replace(/\s+/g, ' ');
}
