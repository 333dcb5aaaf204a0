/**
 * The settings that were read last, by policy and bytes, bounded in number and in the size of their text. What cannot
 * be used is not kept: it is not worth a place, and says so again each time.
 */
export class KeptSettings {
    /** @param {Readonly<import('./limits.js').Limits>} limits */
    constructor(limits: Readonly<import("./limits.js").Limits>);
    /**
     * As `SettingsType.read`, without the warnings; read only when it is not kept.
     *
     * @param {import('./policies.js').Policy} policy
     * @param {Buffer} raw
     * @returns {any}
     * @throws {import('./errors.js').InvalidSettingsError}
     */
    read(policy: import("./policies.js").Policy, raw: Buffer): any;
    #private;
}
