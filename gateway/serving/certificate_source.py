"""Where the certificate of the HTTP server comes from: files, a directory for development certificates, or a Secret."""

import ssl
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Optional

from gateway.certificates.pair import CertificatePair
from gateway.serving.admin import Check
from gateway.serving.development_certificates import DevelopmentCertificates, ensure_development_certificates
from gateway.serving.served_certificate import ServedCertificate, system_now
from gateway.serving.settings import Settings
from gateway.serving.tls import read_pair
from gateway.telemetry.metrics import Metrics

if TYPE_CHECKING:
    from gateway.cluster.cluster import Cluster


class CertificateSource:
    """The certificate that the settings choose.

    Args:
        settings: choose one, and the CAs of client certificates.
        metrics: get its expiration, and each change.
        certificate_optional: see ServedCertificate.
        cluster: has the Secret, the time of the API server and the probe of what it serves; None: there is no cluster.
    """

    def __init__(
        self, settings: Settings, metrics: Metrics, *, certificate_optional: bool, cluster: Optional["Cluster"]
    ) -> None:
        self._settings = settings
        self._metrics = metrics
        self._certificate_optional = certificate_optional
        self._secret = None if cluster is None else cluster.certificate
        self._probe = None if cluster is None else cluster.probe
        self._now = system_now if cluster is None else cluster.client.now
        self._served: ServedCertificate | None = None
        self.development: DevelopmentCertificates | None = None
        """What was made for development, once it was read."""

    def read(self) -> None:
        """Read the files, or make them. What is in a Secret is waited for, by ``wait``.

        Raises:
            TlsError, CertificateError: what cannot be used, why, and what to do.
        """
        if self._settings.tls_secret is None:
            self._served = self._serve(partial(read_pair, *self._files()))

    async def wait(self) -> ssl.SSLContext:
        """The context for the first connections, as soon as there is a certificate.

        Raises:
            TlsError: the Secret's certificate cannot be used.
        """
        if self._served is None:
            secret = self._secret
            if secret is None:
                raise ValueError("a certificate in a Secret needs the cluster and the gateway's Service")
            await secret.exists.wait()
            self._served = self._serve(lambda: secret.pair)
            secret.subscribe(self._served.look)
        return self._served.context

    async def watch(self, interval: float, renewed: Callable[[ssl.SSLContext], None]) -> None:
        """See ServedCertificate; to be called after ``wait``."""
        assert self._served is not None  # noqa: S101 - the caller's
        await self._served.watch(interval, renewed)

    def look(self) -> None:
        """Read the files again, now."""
        if self._served is not None:
            self._served.look()

    def check(self) -> Check:
        """The readiness check."""
        notes = (each.note for each in (self._served, self._secret) if each is not None)
        return Check("certificate", self._problem(), "; ".join(filter(None, notes)) or None)

    def _problem(self) -> str | None:
        if self._served is None:
            return (None if self._secret is None else self._secret.note) or "there is none yet"
        replaced = self._probe is not None and self._probe.last.problem is None and self._probe.last.leaf is not None
        return self._served.problem(replaced=replaced)

    def _serve(self, pair: Callable[[], CertificatePair]) -> ServedCertificate:
        return ServedCertificate(
            pair,
            self._settings.client_cas,
            self._metrics,
            certificate_optional=self._certificate_optional,
            now=self._now,
        )

    def _files(self) -> tuple[Path, Path]:
        settings = self._settings
        if settings.tls_dev_dir is not None:
            made = self.development = ensure_development_certificates(settings.tls_dev_dir, settings.tls_dev_names)
            return made.cert_file, made.key_file
        if settings.tls_cert is None or settings.tls_key is None:
            raise ValueError("neither certificate and key nor a directory for development certificates")
        return settings.tls_cert, settings.tls_key
