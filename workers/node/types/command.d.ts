/**
 * Serve until a signal stops the worker, and end the process.
 *
 * @param {Worker} worker
 * @param {readonly string[]} args
 * @returns {Promise<never>}
 */
export function runCommand(worker: Worker, args: readonly string[]): Promise<never>;
export type Worker = import("./worker.js").Worker;
