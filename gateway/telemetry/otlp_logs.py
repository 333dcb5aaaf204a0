"""Exports the decision log as OTLP logs, by OpenTelemetry's own variables: endpoint, protocol, headers, certificates.

A decision is one log record:

===============  ==================================================================================================
field            value
===============  ==================================================================================================
body             the line, a JSON text
event name       ``admission_gateway.decision``
timestamp        when the review arrived
trace id         that of the review, if it has one
severity         WARN if a policy failed, also if that was ignored; else INFO
attributes       ``admission.uid``, ``admission.phase``, ``admission.outcome``
===============  ==================================================================================================
"""

import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec
import structlog
from msgspec import Struct
from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk._logs.export import LogRecordExporter, LogRecordExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from gateway.telemetry.background_writer import WriteError
from gateway.telemetry.labels import Drop
from gateway.telemetry.traces.otlp import LastMessage, resource_of
from gateway.telemetry.traces.partial_success import CollectorAnswer
from gateway.telemetry.traces.settings import GRPC, otlp_target

_LOG: Final = structlog.get_logger(__name__)

EVENT: Final = "admission_gateway.decision"

_SCOPE: Final = InstrumentationScope("admission-gateway")
_NANOSECONDS: Final = 1e9


class _Policy(Struct):
    verdict: str | None
    source: str


class _Line(Struct):
    """What is read of a line."""

    uid: str
    time: datetime
    phase: str
    outcome: str
    policies: list[_Policy]
    trace_id: str | None = msgspec.field(name="traceId")


_decode: Final = msgspec.json.Decoder(_Line).decode


class OtlpSink:
    """Exports lines. A Sink: it waits for the collector for as long as OTEL_EXPORTER_OTLP_TIMEOUT permits.

    Args:
        environment: with OpenTelemetry's variables. (Its exporters read that of the process.)
    """

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        warnings: list[str] = []
        self._target = otlp_target(environment, "LOGS", warnings)
        for warning in warnings:
            used = self._target.endpoint or self._target.protocol
            _LOG.warning("a setting of the decision log is ignored", why=warning, used=used)
        self.name: Final = f"OTLP logs, by {self._target.protocol}"
        self._messages = LastMessage()
        self._resource = resource_of("admission-gateway")
        self._exporter: LogRecordExporter | None = None
        self._answer = CollectorAnswer(ExportLogsServiceResponse, "rejected_log_records")

    def write(self, records: Sequence[bytes]) -> None:
        """See Sink."""
        try:
            # It is made again until that succeeds: a certificate may come later.
            self._exporter = self._exporter or self._made()
            self._answer.clear()
            result = self._exporter.export([self._log_record(line) for line in records])
        except Exception as error:
            raise WriteError(f"{type(error).__name__}: {error}", reason=Drop.REJECTED) from error
        if result is not LogRecordExportResult.SUCCESS:
            raise WriteError(self._messages.take() or "the collector did not take them", reason=Drop.REJECTED)
        rejected = self._answer.rejected(len(records))
        if rejected:
            why = self._answer.explained(len(records))
            raise WriteError(why, written=len(records) - rejected, reason=Drop.REJECTED)

    def close(self) -> None:
        """See Sink."""
        if self._exporter is not None:
            self._exporter.shutdown()  # type: ignore[no-untyped-call]  # of OpenTelemetry

    def _made(self) -> LogRecordExporter:
        endpoint = self._target.endpoint or None
        if self._target.protocol == GRPC:
            from opentelemetry.exporter.otlp.proto.grpc._log_exporter import (  # noqa: PLC0415 - one of two
                OTLPLogExporter,
            )

            exporter = OTLPLogExporter(endpoint=endpoint)
            self._answer.watch_grpc(exporter)
            return exporter
        from opentelemetry.exporter.otlp.proto.http import _log_exporter  # noqa: PLC0415 - one of two

        return _log_exporter.OTLPLogExporter(endpoint=endpoint, session=self._answer.session())

    def _log_record(self, line: bytes) -> ReadableLogRecord:
        decision = _decode(line)
        failed = decision.outcome == "failed" or any(
            each.verdict == "failure" or each.source == "stale" for each in decision.policies
        )
        severity = SeverityNumber.WARN if failed else SeverityNumber.INFO
        record = LogRecord(
            timestamp=round(decision.time.timestamp() * _NANOSECONDS),
            severity_number=severity,
            severity_text=severity.name,
            body=line.decode().rstrip("\n"),
            attributes={
                "admission.uid": decision.uid,
                "admission.phase": decision.phase,
                "admission.outcome": decision.outcome,
            },
            event_name=EVENT,
        )
        if decision.trace_id:
            record.trace_id = int(decision.trace_id, 16)
        return ReadableLogRecord(record, self._resource, _SCOPE)
