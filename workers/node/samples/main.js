/**
 * `node samples/main.js --listen unix:samples.sock`: serve the sample policies.
 *
 * A worker of your own sets OpenTelemetry up here: with its SDK for Node.js, which brings an exporter. This one has
 * none; it only lets the gateway's trace be the current one inside a policy, where the packages are there.
 */

import { worker } from './index.js';

const tracing = await Promise.all([import('@opentelemetry/api'), import('@opentelemetry/context-async-hooks')]).catch(
  () => undefined,
);
if (tracing !== undefined) {
  const [{ context }, { AsyncLocalStorageContextManager }] = tracing;
  context.setGlobalContextManager(new AsyncLocalStorageContextManager());
}

await worker.main();
