"""The Secret of the gateway's certificate: read by each replica, made and rotated by any.

    =============================================  ==================================================================
    the Secret                                     what the gateway does
    =============================================  ==================================================================
    does not exist                                 creates it: with the CA that it knows, else with a new one
    has ``app.kubernetes.io/managed-by:            serves it, and rotates CA and certificate (``certificates.rotation``)
    admission-gateway``
    has not: it is cert-manager's or an            serves it, never writes it
    operator's
    cannot be read or written                      serves what it knows
    =============================================  ==================================================================

Replicas do not agree on who writes. Each write names the version that was read: of several, the API server takes one
(409 Conflict for the others), and the others serve what that one wrote.

The Secret is polled, not watched: a watch is a permission to list Secrets, and a new certificate is never urgent.
"""

import asyncio
import base64
import binascii
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

import structlog

from gateway.certificates.content import BUNDLE, CERTIFICATE, KEY, SecretContent, read_content
from gateway.certificates.pair import CertificatePair
from gateway.certificates.rotation import Trusted, rotation
from gateway.cluster.client import KubernetesClient, collection_path, object_path
from gateway.cluster.errors import ApiError

_LOG: Final = structlog.get_logger(__name__)

POLL_SECONDS: Final = 10.0
"""A hundred replicas make ten small requests a second. Whatever is rotated has a month for it."""

_WRITES: Final = 5
"""Attempts to write at one look: each conflict means that another replica has written."""

_MANAGED_BY: Final = "app.kubernetes.io/managed-by"
_MANAGER: Final = "admission-gateway"

_CLOCK_TOLERANCE: Final = timedelta(minutes=1)
"""A clock that is further off the API server's is reported: NTP keeps clocks within a second."""


class CertificateSecret:
    """The Secret, as this replica read it last.

    Args:
        client: connected when ``run`` is called.
        secret: its namespace and name.
        names: the DNS names that a certificate of the gateway's own must cover.
        trusted: the CAs that the API server trusts, for a rotation of the CA.
    """

    def __init__(
        self,
        client: KubernetesClient,
        secret: tuple[str, str],
        names: Sequence[str],
        *,
        trusted: Callable[[], Awaitable[Trusted]],
    ) -> None:
        self._client = client
        self._namespace, self._name = secret
        self._names = names
        self._trusted = trusted
        self._subscribers: list[Callable[[], object]] = []
        self._data: Mapping[str, bytes] = {}
        self._known: SecretContent | None = None
        self._problem: str | None = None
        self._look = asyncio.Event()
        self.exists = asyncio.Event()
        """Set once there is a certificate."""

    @property
    def pair(self) -> CertificatePair:
        """What to serve; empty unless ``exists``."""
        return CertificatePair(
            certificate=self._data.get(CERTIFICATE, b""),
            key=self._data.get(KEY, b""),
            certificate_name=f"TLS certificate {self._place} {CERTIFICATE}",
            key_name=f"TLS key {self._place} {KEY}",
        )

    @property
    def bundle(self) -> bytes:
        """PEM of the CAs that clients have to trust: ``caBundle``. Empty: not known."""
        return self._data.get(BUNDLE, b"")

    @property
    def note(self) -> str | None:
        """What an operator has to correct."""
        skew = self._client.clock_skew
        if abs(skew) < _CLOCK_TOLERANCE:
            return self._problem
        side = "behind" if skew > timedelta(0) else "ahead of"
        clock = f"this machine's clock is {abs(skew).total_seconds():.0f} s {side} the API server's; correct it"
        return clock if self._problem is None else f"{self._problem}; {clock}"

    def subscribe(self, changed: Callable[[], object]) -> None:
        """Call ``changed`` after each change of ``pair`` or ``bundle``."""
        self._subscribers.append(changed)

    def look(self) -> None:
        """Read the Secret again, now."""
        self._look.set()

    async def run(self) -> None:
        """Read the Secret again and again, and write it when it is due, until cancelled."""
        while True:
            try:
                await self._refresh()
            except ApiError as error:
                self._report(f"{self._place} cannot be read or written, what is known of it is served: {error}")
            except Exception:  # noqa: BLE001 - logged; what is known is served, and the next look may succeed
                _LOG.exception("reading the Secret of the certificate failed inside the gateway")
            try:
                await asyncio.wait_for(self._look.wait(), POLL_SECONDS)
            except TimeoutError:
                continue
            self._look.clear()

    @property
    def _place(self) -> str:
        return f"Secret {self._namespace}/{self._name}"

    async def _refresh(self) -> None:
        for _ in range(_WRITES):
            found = await self._get()
            if found is not None and not _is_managed(found):
                self._take_foreign(_data(found))
                return
            data = None if found is None else _data(found)
            content = None if data is None else read_content(data)
            trusted = await self._trusted() if content is not None and content.waiting else ()
            due = rotation(content, self._names, trusted, self._client.now(), remembered=self._known)
            if due is None:
                self._problem = None
                self._take(data or {}, content)
                return
            if content is not None and not content.problems:
                # What is there is served even if it cannot be written.
                self._take(data or {}, content)
            try:
                await self._write(found, due.content.data())
            except ApiError as error:
                if error.code != 409:  # noqa: PLR2004 - Conflict, AlreadyExists: another replica has written it
                    raise
                continue
            # It is read again: nothing is served that the API server does not have.
            _LOG.info("the Secret of the certificate was written", secret=self._place, why="; ".join(due.reasons))

    async def _get(self) -> Any:
        try:
            return await self._client.get(object_path("", "v1", "secrets", self._name, self._namespace))
        except ApiError as error:
            if error.code == 404:  # noqa: PLR2004 - NotFound
                return None
            raise

    async def _write(self, found: Any, data: Mapping[str, bytes]) -> None:
        encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
        if found is not None:
            path = object_path("", "v1", "secrets", self._name, self._namespace)
            # Its resourceVersion is among the metadata: the API server refuses the write if it is not the last.
            await self._client.send("PUT", path, {**found, "data": {**(found.get("data") or {}), **encoded}})
            return
        obj = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": self._name, "namespace": self._namespace, "labels": {_MANAGED_BY: _MANAGER}},
            "type": "kubernetes.io/tls",
            "data": encoded,
        }
        await self._client.send("POST", collection_path("", "v1", "secrets", self._namespace), obj)

    def _take_foreign(self, data: Mapping[str, bytes]) -> None:
        missing = [key for key in (CERTIFICATE, KEY) if not data.get(key)]
        if missing:
            self._report(
                f"{self._place} has no {' and no '.join(missing)}, and not the label {_MANAGED_BY}={_MANAGER}, without "
                "which the gateway does not write it; wait for its issuer, or delete it"
            )
            return
        self._problem = None
        self._take(data, None)

    def _take(self, data: Mapping[str, bytes], content: SecretContent | None) -> None:
        """Serve and publish what was read."""
        self._known = content
        used = {key: data.get(key, b"") for key in (CERTIFICATE, KEY, BUNDLE)}
        if used == self._data:
            return
        self._data = used
        self.exists.set()
        for changed in self._subscribers:
            changed()

    def _report(self, problem: str) -> None:
        if problem != self._problem:
            self._problem = problem
            _LOG.warning("the Secret of the certificate cannot be used", why=problem)


def _is_managed(secret: Any) -> bool:
    return (secret["metadata"].get("labels") or {}).get(_MANAGED_BY) == _MANAGER


def _data(secret: Any) -> dict[str, bytes]:
    """The data of a Secret; what is no base64 is no data."""
    decoded = {}
    for key, value in (secret.get("data") or {}).items():
        try:
            decoded[key] = base64.b64decode(value)
        except (binascii.Error, ValueError, TypeError):
            decoded[key] = b""
    return decoded
