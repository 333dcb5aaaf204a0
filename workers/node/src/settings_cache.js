/**
 * The settings that were used last, by policy and bytes, bounded in number and in the size of their text. Invalid
 * settings are not cached: they are checked, and their errors reported, in each call.
 */
export class SettingsCache {
  #limits;
  /** The least recently used first. @type {Map<string, { settings: any, bytes: number }>} */
  #entries = new Map();
  #bytes = 0;

  /** @param {Readonly<import('./limits.js').Limits>} limits */
  constructor(limits) {
    this.#limits = limits;
  }

  /**
   * As `SettingsType.read`, without the warnings, and cached.
   *
   * @param {import('./policies.js').Policy} policy
   * @param {Buffer} raw
   * @returns {any}
   * @throws {import('./errors.js').InvalidSettingsError}
   */
  read(policy, raw) {
    // latin1 maps each byte to one character: different bytes are different keys, also if they are not UTF-8.
    const key = `${policy.name} ${raw.toString('latin1')}`;
    const cached = this.#entries.get(key);
    if (cached !== undefined) {
      this.#entries.delete(key);
      this.#entries.set(key, cached);
      return cached.settings;
    }
    const { settings } = policy.settings.read(raw);
    this.#entries.set(key, { settings, bytes: raw.length });
    this.#bytes += raw.length;
    this.#evict();
    return settings;
  }

  #evict() {
    for (const [key, { bytes }] of this.#entries) {
      if (this.#entries.size <= this.#limits.settingsKept && this.#bytes <= this.#limits.settingsKeptBytes) return;
      this.#entries.delete(key);
      this.#bytes -= bytes;
    }
  }
}
