/** @typedef {import('ajv').ErrorObject} ErrorObject */
/**
 * Convert ajv's errors.
 *
 * @param {readonly ErrorObject[]} found by ajv, verbose
 * @returns {SettingsError[]}
 */
export function errorsOf(found: readonly ErrorObject[]): SettingsError[];
export type ErrorObject = import("ajv").ErrorObject;
import { SettingsError } from './errors.js';
