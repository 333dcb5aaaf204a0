/**
 * The settings that were used last, by policy and bytes, bounded in number and in the size of their text. Invalid
 * settings are not cached: they are checked, and their errors reported, in each call.
 */
export class SettingsCache {
    /** @param {Readonly<import('./limits.js').Limits>} limits */
    constructor(limits: Readonly<import("./limits.js").Limits>);
    /**
     * As `SettingsType.read`, without the warnings, and cached.
     *
     * @param {import('./policies.js').Policy} policy
     * @param {Buffer} raw
     * @returns {any}
     * @throws {import('./errors.js').InvalidSettingsError}
     */
    read(policy: import("./policies.js").Policy, raw: Buffer): any;
    #private;
}
