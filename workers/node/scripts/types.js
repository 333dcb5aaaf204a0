/**
 * `types/`: the declarations for TypeScript, made from the source's JSDoc and committed, so that a clone needs no build.
 *
 *     node scripts/types.js           make them
 *     node scripts/types.js --check   exit 1 if the committed ones differ
 */

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const COMMITTED = join(ROOT, 'types');

/** @param {string} folder */
function emitInto(folder) {
  rmSync(folder, { recursive: true, force: true });
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
  const flags = ['--project', 'tsconfig.types.json', '--outDir', folder];
  const { status } = spawnSync(process.execPath, [tsc, ...flags], { cwd: ROOT, stdio: 'inherit' });
  if (status !== 0) process.exit(1);
}

/**
 * @param {string} folder
 * @returns {Map<string, string>} its files by name
 */
function filesOf(folder) {
  return new Map(readdirSync(folder).map(name => [name, readFileSync(join(folder, name), 'utf8')]));
}

if (process.argv[2] === '--check') {
  const folder = mkdtempSync(join(tmpdir(), 'admission-worker-types-'));
  try {
    emitInto(folder);
    const made = filesOf(folder);
    const there = filesOf(COMMITTED);
    const differing = [...new Set([...made.keys(), ...there.keys()])].filter(
      name => made.get(name) !== there.get(name),
    );
    if (differing.length > 0) {
      console.error(`types/ differs from the source: ${differing.join(', ')}; run: npm run types`);
      process.exitCode = 1;
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
} else {
  emitInto(COMMITTED);
}
