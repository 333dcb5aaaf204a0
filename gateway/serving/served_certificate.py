"""The certificate of the HTTP server: read at the start, and again when it changes, in its files or its Secret.

    ==============================  ================================================================================
    the certificate                 what follows
    ==============================  ================================================================================
    changed, and can be used        new connections get the new certificate; established connections stay
    changed, but cannot be used     the certificate in use stays; the log has the error once, ``/readyz`` a note
    expired when the gateway began  the gateway is not ready, so that a rolling update stops with its first pod
    expired while it serves         the gateway stays ready: the other replicas have the same certificate, and without
                                    an endpoint users would only lose the reason
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

from gateway.certificates.pair import CertificatePair
from gateway.serving.tls import TlsError, Validity, server_context, validity_of
from gateway.sources.watching import PollTimer
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.table import CERTIFICATE_EXPIRATION, CERTIFICATE_RELOADS

_LOG: Final = structlog.get_logger(__name__)

_Contents = tuple[CertificatePair | bytes | str | None, ...]
"""The pair, or why it cannot be read; the content of each other file, None if it cannot be read."""


def system_now() -> datetime:
    """This machine's time."""
    return datetime.now(UTC)


class ServedCertificate:
    """The pair in use.

    Args:
        pair: reads the certificate and its key; it raises TlsError.
        client_cas: PEM files of the CAs for client certificates.
        certificate_optional: clients need no certificate, because they may have other credentials.
        metrics: get the expiration, and each change.
        now: the time, timezone-aware.

    Raises:
        TlsError: the pair or a file cannot be used.
    """

    def __init__(
        self,
        pair: Callable[[], CertificatePair],
        client_cas: Sequence[Path],
        metrics: Metrics,
        *,
        certificate_optional: bool = False,
        now: Callable[[], datetime] = system_now,
    ) -> None:
        self._pair = pair
        self._now = now
        self._client_cas = client_cas
        self._certificate_optional = certificate_optional
        self._metrics = metrics
        self._poll_timer = PollTimer()
        self._read = self._seen = self._contents()
        self._unusable: str | None = None
        self.context, self._validity = self._load()
        self._was_valid = self._validity.problem(self._now()) is None
        self._metrics.set(CERTIFICATE_EXPIRATION, self._validity.ends.timestamp())

    def problem(self, *, replaced: bool = False) -> str | None:
        """Why this replica must get no connections; None if it may.

        Args:
            replaced: whether another replica was seen with a certificate that is valid.
        """
        problem = self._validity.problem(self._now())
        return problem if replaced or not self._was_valid else None

    @property
    def note(self) -> str | None:
        """What an operator has to correct although the gateway may be ready; None: nothing."""
        expired = self._validity.problem(self._now()) if self._was_valid else None
        return "; ".join(each for each in (expired, self._unusable) if each is not None) or None

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
            self._unusable = f"the new certificate cannot be used, the one read before is served: {error}"
            self._metrics.count(CERTIFICATE_RELOADS, "invalid")
            _LOG.error("the new TLS certificate cannot be used; the one in use stays", why=str(error))
            return
        self._unusable = None
        self.context, self._validity = context, validity
        self._was_valid = self._was_valid or validity.problem(self._now()) is None
        renewed(context)
        self._metrics.set(CERTIFICATE_EXPIRATION, validity.ends.timestamp())
        self._metrics.count(CERTIFICATE_RELOADS, "loaded")
        _LOG.info("new connections get the new TLS certificate", certificate=validity.name)

    def _require_no_worse(self, validity: Validity) -> None:
        """Raise TlsError for a certificate that is not valid now, if the one in use is."""
        problem = validity.problem(self._now())
        if problem is not None and self._validity.problem(self._now()) is None:
            raise TlsError(problem)

    def _load(self) -> tuple[ssl.SSLContext, Validity]:
        pair = self._pair()
        context = server_context(pair, self._client_cas, certificate_optional=self._certificate_optional)
        return context, validity_of(pair)

    def _has_changed(self, requested: bool) -> bool:  # noqa: FBT001 - called through a thread
        found = self._contents()
        rests, self._seen = found == self._seen, found
        if found == self._read or not (rests or requested):
            return False
        self._read = found
        return True

    def _contents(self) -> _Contents:
        try:
            pair: CertificatePair | str = self._pair()
        except TlsError as error:
            pair = str(error)
        return (pair, *map(_content, self._client_cas))


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None
