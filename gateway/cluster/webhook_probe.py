"""The probe of the path by which the API server calls the gateway.

Once a minute each replica reads the live webhook configurations, takes the webhooks that name this gateway's Service,
and does for each caBundle and port what the API server would: find the Service's address, connect, and verify the
certificate that is shown there for ``SERVICE.NAMESPACE.svc``. So it notices a caBundle that was edited, a
Service that leads nowhere and a certificate that was not renewed, wherever certificates come from.

The probe goes through the Service: another replica may answer it. No result makes a replica unready.
"""

import asyncio
import base64
import binascii
import random
import socket
import ssl
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, Final

import structlog
from cryptography import x509
from msgspec import Struct

from gateway.certificates.authority import is_issued_by
from gateway.certificates.content import fingerprints
from gateway.certificates.rotation import Trusted
from gateway.cluster.client import KubernetesClient, collection_path, object_path
from gateway.cluster.errors import ApiError
from gateway.policies.workers.targets import ServiceReference

_LOG: Final = structlog.get_logger(__name__)

PROBE_SECONDS: Final = 60.0
"""Seconds between probes, plus or minus a tenth, so that replicas do not probe in step."""

CONNECT_SECONDS: Final = 10.0
"""The API server's own limit for a TLS handshake, if the webhook's timeout is longer."""

_TARGETS: Final = 20
"""Pairs of port and caBundle that are probed, for 200 s in the worst case. Usually there is one: a gateway has one
port, and a caBundle is changed in all webhooks at once."""

SETTLED: Final = timedelta(seconds=5)
"""How long a CA has to be in a live caBundle until it counts as trusted: an API server uses a change of a webhook
configuration after less than a second."""

_HTTPS: Final = 443
_RESOURCES: Final = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")


class ProbeResult(Struct, frozen=True, kw_only=True):
    """What a probe found.

    ``problem``: why the API server cannot call the gateway; None: it can. ``leaf``, ``ca``: when the first of the
    certificates shown, and of the CAs that issued them, expires; None: none was verified.
    """

    problem: str | None = None
    leaf: datetime | None = None
    ca: datetime | None = None


class _Target(Struct, frozen=True, kw_only=True):
    """One way to the gateway."""

    port: int
    bundle: bytes


class WebhookProbe:
    """Probes again and again.

    Args:
        client: connected when ``run`` is called.
        service: the gateway's.
        handshake: False: the gateway requires client certificates, and the probe has none; it connects only.
        found: called with each result.
    """

    def __init__(
        self,
        client: KubernetesClient,
        service: ServiceReference,
        *,
        handshake: bool,
        found: Callable[[ProbeResult], object],
    ) -> None:
        self._client = client
        self._service = service
        self._handshake = handshake
        self._found = found
        self._look = asyncio.Event()
        self._seen: Mapping[tuple[str, bytes], datetime] = {}
        self._webhooks: frozenset[str] = frozenset()
        self.last = ProbeResult()
        """The last probe's result."""

    def look(self) -> None:
        """Probe now."""
        self._look.set()

    async def trusted(self) -> Trusted:
        """The CAs that the webhooks trust now, and have for a moment; empty if they cannot be read."""
        with suppress(ApiError):
            await self._targets()
            settled = [key for key, since in self._seen.items() if self._client.now() - since >= SETTLED]
            return [frozenset(ca for webhook, ca in settled if webhook == each) for each in self._webhooks]
        return ()

    async def distrust(self, bundle: bytes, port: int) -> str | None:
        """Why a webhook with this caBundle, PEM, could not verify what the Service shows at this port.

        None if it could, or if that is not known: the Service cannot be read or reached, clients need certificates.
        """
        if not self._handshake:
            return None
        about = self._service
        try:
            service = await self._client.get(object_path("", "v1", "services", about.name, about.namespace))
        except ApiError:
            return None
        problem = await probe_service(service, port, bundle, f"{about.name}.{about.namespace}.svc")
        return problem.text if problem is not None and problem.is_certificate else None

    async def run(self) -> None:
        """Probe until cancelled."""
        while True:
            try:
                result = await self._probe()
            except ApiError as error:
                result = ProbeResult(problem=f"not known: {error}")
            except Exception:  # noqa: BLE001 - logged; the next probe may succeed
                _LOG.exception("a probe of the webhooks failed inside the gateway")
                result = ProbeResult(problem="not known: the probe failed inside the gateway; see its log")
            if result.problem is not None and result.problem != self.last.problem:
                _LOG.warning("the API server cannot call the gateway through its Service", why=result.problem)
            self.last = result
            self._found(result)
            try:
                await asyncio.wait_for(self._look.wait(), PROBE_SECONDS * random.uniform(0.9, 1.1))  # noqa: S311 - jitter
            except TimeoutError:
                continue
            self._look.clear()

    async def _probe(self) -> ProbeResult:
        targets = await self._targets()
        if not targets:
            return ProbeResult()
        service = await self._client.get(object_path("", "v1", "services", self._service.name, self._service.namespace))
        results = [
            await self._verified(service, target, webhook) for target, webhook in list(targets.items())[:_TARGETS]
        ]
        return ProbeResult(
            problem=next((each.problem for each in results if each.problem is not None), None),
            leaf=min((each.leaf for each in results if each.leaf is not None), default=None),
            ca=min((each.ca for each in results if each.ca is not None), default=None),
        )

    async def _targets(self) -> dict[_Target, str]:
        """The ways to the gateway in the live webhook configurations, each with a webhook that takes it."""
        targets: dict[_Target, str] = {}
        present: set[tuple[str, bytes]] = set()
        webhooks = set()
        for resource in _RESOURCES:
            path = collection_path("admissionregistration.k8s.io", "v1", resource)
            for each in (await self._client.list_all(path))[0]:
                for webhook in each.get("webhooks") or ():
                    target = _target(webhook["clientConfig"], self._service)
                    if target is None:
                        continue
                    key = f"{each['metadata']['name']}/{webhook['name']}"
                    targets.setdefault(target, f"{resource[:-1]} {each['metadata']['name']}, webhook {webhook['name']}")
                    webhooks.add(f"{resource}/{key}")
                    present |= {(f"{resource}/{key}", ca) for ca in fingerprints(target.bundle)}
        now = self._client.now()
        self._seen = {key: self._seen.get(key, now) for key in present}
        self._webhooks = frozenset(webhooks)
        return targets

    async def _verified(self, service: Any, target: _Target, webhook: str) -> ProbeResult:
        try:
            host, port = _address(service, target.port)
            context = _context(target.bundle) if self._handshake else None
            shown = await _shown(host, port, f"{self._service.name}.{self._service.namespace}.svc", context)
        except (ValueError, OSError) as error:
            return ProbeResult(problem=f"{webhook}: {_reason(error)}")
        if shown is None:
            return ProbeResult()
        return ProbeResult(leaf=shown.not_valid_after_utc, ca=_issuer_ends(shown, target.bundle))


class PathProblem(Struct, frozen=True, kw_only=True):
    """Why the API server could not call a Service. ``is_connection``: it may be this machine's own problem."""

    text: str
    is_certificate: bool = False
    is_connection: bool = False


async def probe_service(service: Any, port: int, bundle: bytes, name: str) -> PathProblem | None:
    """Whether this bundle verifies what a Service shows, as the API server would; None: it does.

    Args:
        service: the object.
        port: that of the webhook.
        bundle: PEM; empty: the system's roots.
        name: for which the certificate is verified.
    """
    try:
        host, number = _address(service, port)
        await _shown(host, number, name, _context(bundle))
    except (ValueError, OSError) as error:
        is_tls = isinstance(error, ssl.SSLError)
        return PathProblem(
            text=_reason(error),
            is_certificate=isinstance(error, ssl.SSLCertVerificationError),
            is_connection=isinstance(error, OSError) and not is_tls,
        )
    return None


def _target(config: Any, service: ServiceReference) -> _Target | None:
    reference = config.get("service")
    if reference is None or (reference["namespace"], reference["name"]) != (service.namespace, service.name):
        return None
    try:
        bundle = base64.b64decode(config.get("caBundle") or "")
    except (binascii.Error, ValueError):
        bundle = b""
    return _Target(port=reference.get("port") or _HTTPS, bundle=bundle)


def _address(service: Any, port: int) -> tuple[str, int]:
    """Where the API server connects to (k8s.io/kube-aggregator pkg/apiserver/resolvers.go, ResolveCluster)."""
    spec = service["spec"]
    if spec.get("type") == "ExternalName":
        return spec["externalName"], port
    cluster_ip = spec.get("clusterIP", "")
    if cluster_ip in {"", "None"}:
        raise ValueError("the Service has no cluster IP, which the API server calls; remove clusterIP: None")
    if all(each["port"] != port for each in spec.get("ports") or ()):
        raise ValueError(f"the Service has no port {port}; correct the webhook's or the Service's")
    return cluster_ip, port


def _context(bundle: bytes) -> ssl.SSLContext:
    """The API server's TLS (Go's): any certificate of the bundle is a root, and only alternative names count."""
    if bundle and not fingerprints(bundle):
        raise ValueError("its caBundle has no readable PEM certificate")
    context = ssl.create_default_context(cadata=bundle.decode("ascii", "replace") if bundle else None)
    context.verify_flags = ssl.VERIFY_X509_PARTIAL_CHAIN | ssl.VERIFY_X509_TRUSTED_FIRST
    context.hostname_checks_common_name = False
    context.set_alpn_protocols(["http/1.1"])
    return context


async def _shown(host: str, port: int, name: str, context: ssl.SSLContext | None) -> x509.Certificate | None:
    """The certificate that is shown at an address, verified; without a context, None. Raises OSError."""
    server_hostname = None if context is None else name
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            _, writer = await asyncio.open_connection(host, port, ssl=context, server_hostname=server_hostname)
    except TimeoutError:
        raise OSError(f"no connection to {host}:{port} in {CONNECT_SECONDS:g} s") from None
    try:
        if context is None:
            return None
        return x509.load_der_x509_certificate(writer.get_extra_info("ssl_object").getpeercert(binary_form=True))
    finally:
        writer.close()


def _issuer_ends(leaf: x509.Certificate, bundle: bytes) -> datetime | None:
    """When the CA by which the leaf is trusted expires; with an intermediate CA, the first of the bundle."""
    cas = x509.load_pem_x509_certificates(bundle) if bundle else []
    issuers = [ca for ca in cas if is_issued_by(leaf, ca)]
    return min((ca.not_valid_after_utc for ca in issuers or cas), default=None)


def _reason(error: Exception) -> str:
    match error:
        case ssl.SSLCertVerificationError():
            return f"its caBundle does not verify the certificate that the Service shows: {error.verify_message}"
        case ssl.SSLError():
            return f"TLS with the Service fails: {error.reason or error}"
        case socket.gaierror():
            return f"the Service's name is not resolved: {error.strerror}"
        case _:
            return str(error)
