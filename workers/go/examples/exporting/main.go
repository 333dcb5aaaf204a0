// Command exporting serves a worker that exports its traces, to where OpenTelemetry's environment variables say. The
// README shows it. It is a module of its own, so that the SDK does not depend on an exporter.
package main

import (
	"context"
	"log"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/trace"

	"admission-gateway.dev/worker"
)

var traced = worker.Policy[worker.NoSettings]{
	Name:  "traced",
	Phase: worker.Validating,
	Judge: func(context.Context, *worker.Request, worker.NoSettings) (worker.Answer, error) {
		return worker.Allow(), nil
	},
}

func main() {
	exporter, err := otlptracegrpc.New(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	otel.SetTracerProvider(trace.NewTracerProvider(trace.WithBatcher(exporter)))
	worker.Main("exporting", "1.0.0", traced)
}
