/**
 * The returned object's text with the numbers of the object that was sent.
 *
 * @param {string} content JSON text of the object as the policy returned it
 * @param {unknown} sent the object that was sent, as it was read, unchanged, with its numbers remembered
 * @returns {string}
 * @throws {InvalidAnswerError} a number was moved in a copy, and its digits are lost
 */
export function withNumbersOf(content: string, sent: unknown): string;
