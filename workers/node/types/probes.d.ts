/**
 * A worker's policies and the probes.
 *
 * @param {ReadonlyMap<string, Policy>} policies
 * @returns {Map<string, Policy>}
 * @throws {RegistrationError} a policy has the name of a probe
 */
export function withProbes(policies: ReadonlyMap<string, Policy>): Map<string, Policy>;
import { Policy } from './policies.js';
