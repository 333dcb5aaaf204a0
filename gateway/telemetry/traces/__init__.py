"""Decisions -> OpenTelemetry's spans, exported by OTLP. Only a gateway that exports them imports OpenTelemetry."""
