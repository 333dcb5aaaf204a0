/**
 * The returned object's text, with the number texts of the object that was sent.
 *
 * @param {string} content JSON text of the object that the policy returned
 * @param {unknown} sent the object that was sent, unchanged, with its stored number texts
 * @returns {string}
 * @throws {InvalidAnswerError} a number that lost digits was moved in a copy
 */
export function withNumbersOf(content: string, sent: unknown): string;
