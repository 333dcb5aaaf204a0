"""What a collector rejects of a batch that it takes: OTLP's partial success.

"If the request is only partially accepted ... the server MUST initialize the partial_success field ... and it MUST set
the respective rejected_spans, rejected_data_points or rejected_log_records field with the number of ... items it
rejected." OpenTelemetry's exporters do not read it: for them the whole batch is exported. So the collector's answer is
read on its way to the exporter: over gRPC where the stub returns it, over HTTP in a hook of the session.

``error_message`` with nothing rejected is a warning to senders; it is not counted.
"""

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Protocol

from google.protobuf.message import DecodeError, Message

if TYPE_CHECKING:
    from collections.abc import Callable

    import requests

_PROTOBUF: Final = "application/x-protobuf"

_CREDENTIAL_PROVIDER: Final = "_CREDENTIAL_PROVIDER"
"""The variables with which OpenTelemetry loads a session of the user's: it keeps that, and its answers are not read."""


class _Answer(Protocol):
    """The type of a signal's answers."""

    @staticmethod
    def FromString(s: bytes, /) -> Any:  # noqa: N802 - protobuf's name
        """Read one."""


class CollectorAnswer:
    """The collector's last answer to one exporter.

    Args:
        kind: of the answers.
        count: the field of ``partial_success`` with the number of what was rejected.
    """

    def __init__(self, kind: _Answer, count: str) -> None:
        self._kind = kind
        self._count = count
        self._rejected = 0
        self.message = ""

    def clear(self) -> None:
        """Forget it, before the next batch."""
        self._rejected, self.message = 0, ""

    def rejected(self, sent: int) -> int:
        """How many of those that were sent the collector has rejected."""
        return min(max(self._rejected, 0), sent)

    def explained(self, sent: int) -> str:
        """What the log says of that."""
        why = f": {' '.join(self.message.split())}" if self.message else ""
        return f"the collector rejected {self.rejected(sent)} of {sent}{why}"

    def read(self, answer: Message) -> None:
        """Keep what this answer says."""
        partial = answer.partial_success  # type: ignore[attr-defined]  # all answers of OTLP have it
        self._rejected, self.message = getattr(partial, self._count), partial.error_message

    def watch_grpc(self, exporter: Any) -> None:
        """Read what the stub of this exporter returns, also after it has connected again.

        OpenTelemetry has no hook for that. A release without these members exports as before, and what is rejected is
        counted as exported; the tests notice.
        """
        connect: Callable[[], None] | None = getattr(exporter, "_initialize_channel_and_stub", None)
        if connect is None:
            return

        def connect_again() -> None:
            connect()
            self._watch_stub(exporter)

        exporter._initialize_channel_and_stub = connect_again  # noqa: SLF001 - see above
        self._watch_stub(exporter)

    def _watch_stub(self, exporter: Any) -> None:
        stub = getattr(exporter, "_client", None)
        export = getattr(stub, "Export", None)
        if stub is None or export is None:
            return

        def export_and_read(*arguments: Any, **named: Any) -> Any:
            answer = export(*arguments, **named)
            self.read(answer)
            return answer

        stub.Export = export_and_read

    def session(self) -> "requests.Session | None":
        """A session for an exporter over HTTP, whose answers are read; None: OpenTelemetry has to load the user's."""
        if any(name.endswith(_CREDENTIAL_PROVIDER) and text for name, text in os.environ.items()):
            return None
        import requests  # noqa: PLC0415 - over gRPC, nothing needs it

        session = requests.Session()
        session.hooks["response"].append(self._read_http)
        return session

    def _read_http(self, response: "requests.Response", *_: Any, **__: Any) -> None:
        media_type = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if response.ok and media_type == _PROTOBUF:
            with suppress(DecodeError):  # not OTLP; with this status, the batch is taken
                self.read(self._kind.FromString(response.content))
