/**
 * The types, as a TypeScript author uses them: `tsc` checks this file, and it is never run. It imports the package by
 * its name, and so the declarations in types/.
 */

import { type Answer, allow, deny, mutated, NO_STORE, type Request, Worker } from 'admission-worker';
import { review } from 'admission-worker/testing';
import type { Pod } from 'kubernetes-types/core/v1.d.ts';

interface Settings {
  key: string;
}

const worker: Worker = new Worker('types', { version: '1' });

worker.validating(
  'typed',
  { validate: (settings: Settings) => (settings.key ? [] : ['no key']), settings: { type: 'object' } },
  (request: Request<Pod>, settings: Settings): Answer | undefined => {
    const image: string | undefined = request.object?.spec?.containers[0]?.image;
    const signal: AbortSignal = request.signal;
    return image === undefined || signal.aborted ? undefined : deny(settings.key, { cache: NO_STORE });
  },
);

worker.mutating('inferred', { writes: ['/metadata'] }, async ({ object, userInfo }) => {
  const groups: string[] | undefined = userInfo?.groups;
  return groups ? mutated(object) : allow({ warnings: ['a'], auditAnnotations: { a: 'b' }, cache: 60 });
});

// @ts-expect-error a validating policy has no writes
worker.validating('wrong', { writes: [] }, () => allow());

// @ts-expect-error an answer is none of this
worker.validating('wrong', {}, () => true);

// @ts-expect-error a code is a number
deny('no', { code: '403' });

export const answer: Promise<Answer> = review(worker, 'typed', { operation: 'CREATE' }, { key: 'a' });
