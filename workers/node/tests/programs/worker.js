/** A worker for tests of the command. */

import { deny, Worker } from 'admission-worker';

const worker = new Worker('program', { version: '1.0.0' });

worker.validating('plain', {}, () => deny('plain'));

worker.validating('stray', {}, () => {
  Promise.reject(new Error('not awaited'));
  setTimeout(() => {
    throw new Error('not caught');
  });
  return new Promise(() => {});
});

await worker.main();
