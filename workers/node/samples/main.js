/**
 * `node samples/main.js --listen unix:samples.sock`: serve the sample policies.
 *
 * Your own worker sets up OpenTelemetry here, with its SDK for Node.js and an exporter. This one has no exporter: it
 * only makes the gateway's trace active inside a policy, if the packages are installed.
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
