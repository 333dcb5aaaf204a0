"""The certificate of the HTTP server: read at the start, and again when its files change.

    ==============================  ================================================================================
    the files                       what follows
    ==============================  ================================================================================
    changed, and can be used        new connections get the new certificate; established connections stay
    changed, but cannot be used     the certificate in use stays; the log has the error once, ``/readyz`` a note
    ==============================  ================================================================================

The gateway compares contents, so it does not matter how the files are replaced: a mounted Secret swaps a symbolic link,
cert-manager and certbot rename or rewrite files. A change counts when two polls in a row find the same, because
certificate and key are two files, and a writer may be between them.
"""

import asyncio
import ssl
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import structlog

from gateway.serving.tls import TlsError, Validity, server_context, validity_of
from gateway.sources.watching import PollTimer
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.table import CERTIFICATE_EXPIRATION, CERTIFICATE_RELOADS

_LOG: Final = structlog.get_logger(__name__)

_Contents = tuple[bytes | None, ...]
"""The content of each file; None: it cannot be read."""


class ServedCertificate:
    """The pair in use.

    Args:
        cert: PEM file of the certificate and its chain.
        key: PEM file of its private key.
        client_cas: PEM files of the CAs for client certificates.
        certificate_optional: clients need no certificate, because they may have other credentials.
        metrics: get the expiration, and each change.

    Raises:
        TlsError: a file cannot be used.
    """

    def __init__(
        self,
        cert: Path,
        key: Path,
        client_cas: Sequence[Path],
        metrics: Metrics,
        *,
        certificate_optional: bool = False,
    ) -> None:
        self._cert = cert
        self._key = key
        self._client_cas = client_cas
        self._certificate_optional = certificate_optional
        self._metrics = metrics
        self._poll_timer = PollTimer()
        self._read = self._seen = self._contents()
        self.note: str | None = None
        self.context, self._validity = self._load()
        self._metrics.set(CERTIFICATE_EXPIRATION, self._validity.ends.timestamp())

    def problem(self) -> str | None:
        """Why the certificate in use is not valid now; None if it is valid."""
        return self._validity.problem(datetime.now(UTC))

    def look(self) -> None:
        """Read the files again, now."""
        self._poll_timer.now()

    async def watch(self, interval: float, renewed: Callable[[ssl.SSLContext], None]) -> None:
        """Read the files again whenever they have changed, until cancelled.

        Args:
            interval: seconds between polls; 0: only after ``look``.
            renewed: called with the context for new connections.
        """
        while True:
            requested = await self._poll_timer.pause(interval)
            try:
                if await asyncio.to_thread(self._has_changed, requested):
                    await self._renew(renewed)
            except Exception:  # noqa: BLE001 - logged; the certificate stays, and the next poll may succeed
                _LOG.exception("reading the TLS certificate again failed inside the gateway")

    async def _renew(self, renewed: Callable[[ssl.SSLContext], None]) -> None:
        try:
            context, validity = await asyncio.to_thread(self._load)
            self._require_no_worse(validity)
        except TlsError as error:
            self.note = f"the files have changed and cannot be used, the certificate read before is served: {error}"
            self._metrics.count(CERTIFICATE_RELOADS, "invalid")
            _LOG.error("the new TLS certificate cannot be used; the one in use stays", why=str(error))
            return
        self.note = None
        self.context, self._validity = context, validity
        renewed(context)
        self._metrics.set(CERTIFICATE_EXPIRATION, validity.ends.timestamp())
        self._metrics.count(CERTIFICATE_RELOADS, "loaded")
        _LOG.info("new connections get the new TLS certificate", file=str(self._cert))

    def _require_no_worse(self, validity: Validity) -> None:
        """Raise TlsError for a certificate that is not valid now, if the one in use is."""
        problem = validity.problem(datetime.now(UTC))
        if problem is not None and self.problem() is None:
            raise TlsError(problem)

    def _load(self) -> tuple[ssl.SSLContext, Validity]:
        optional = self._certificate_optional
        context = server_context(self._cert, self._key, self._client_cas, certificate_optional=optional)
        return context, validity_of(self._cert)

    def _has_changed(self, requested: bool) -> bool:  # noqa: FBT001 - called through a thread
        found = self._contents()
        rests, self._seen = found == self._seen, found
        if found == self._read or not (rests or requested):
            return False
        self._read = found
        return True

    def _contents(self) -> _Contents:
        return tuple(map(_content, (self._cert, self._key, *self._client_cas)))


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None
