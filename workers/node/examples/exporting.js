/** A worker that exports its traces, to where OpenTelemetry's environment variables say. The README shows it. */

import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-grpc';
import { NodeSDK } from '@opentelemetry/sdk-node';
import { Worker } from 'admission-worker';

new NodeSDK({ traceExporter: new OTLPTraceExporter() }).start();

const worker = new Worker('exporting', { version: '1.0.0' });
worker.validating('traced', {}, () => undefined);
await worker.main();
