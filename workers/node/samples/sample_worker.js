/** The worker that holds the sample policies. Each policy's module registers itself with it. */

import { Worker } from 'admission-worker';

export const worker = new Worker('samples', { version: '0.1.0' });
