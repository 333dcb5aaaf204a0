/**
 * The settings that were read last, by policy and bytes, bounded in number and in the size of their text. What cannot
 * be used is not kept: it is not worth a place, and says so again each time.
 */
export class KeptSettings {
  #limits;
  /** In the order in which they were used. @type {Map<string, { settings: any, bytes: number }>} */
  #kept = new Map();
  #bytes = 0;

  /** @param {Readonly<import('./limits.js').Limits>} limits */
  constructor(limits) {
    this.#limits = limits;
  }

  /**
   * As `SettingsType.read`, without the warnings; read only when it is not kept.
   *
   * @param {import('./policies.js').Policy} policy
   * @param {Buffer} raw
   * @returns {any}
   * @throws {import('./errors.js').InvalidSettingsError}
   */
  read(policy, raw) {
    // latin1 maps each byte to one character: different bytes are different keys, also where they are no UTF-8.
    const key = `${policy.name} ${raw.toString('latin1')}`;
    const kept = this.#kept.get(key);
    if (kept !== undefined) {
      this.#kept.delete(key);
      this.#kept.set(key, kept);
      return kept.settings;
    }
    const { settings } = policy.settings.read(raw);
    this.#kept.set(key, { settings, bytes: raw.length });
    this.#bytes += raw.length;
    this.#drop();
    return settings;
  }

  #drop() {
    for (const [key, { bytes }] of this.#kept) {
      if (this.#kept.size <= this.#limits.settingsKept && this.#bytes <= this.#limits.settingsKeptBytes) return;
      this.#kept.delete(key);
      this.#bytes -= bytes;
    }
  }
}
