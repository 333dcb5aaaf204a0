"""What the tests of the whole gateway share; their conftests name it."""

import ssl
from contextlib import asynccontextmanager

import pytest

from gateway.serving.development_certificates import ensure_development_certificates
from gateway.transports.limits import TransportLimits
from tests.integration.process import Serving
from tests.integration.running import configuration, policy, running, source
from tests.integration.workers import scripted


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    """A CA and a certificate for localhost."""
    return ensure_development_certificates(tmp_path_factory.mktemp("tls") / "dev")


@pytest.fixture(scope="session")
def trust(certificates):
    """A client's TLS that trusts that CA."""
    return ssl.create_default_context(cafile=certificates.ca_file)


@pytest.fixture(scope="session")
def pair(certificates):
    """The flags that name certificate and key."""
    return ("--tls-cert", certificates.cert_file, "--tls-key", certificates.key_file)


@pytest.fixture(scope="module")
def serving(pair):
    """Start ``admission-gateway serve`` with these arguments and the certificates; it runs to the module's end."""
    yield from _starting(pair)


@pytest.fixture
def serve(pair):
    """The same to the test's end."""
    yield from _starting(pair)


def _starting(pair):
    started = []

    def start(*arguments, tls=pair, **options):
        process = Serving(*arguments, *tls, **options)
        started.append(process)
        return process

    yield start
    for process in started:
        process.stop()


@pytest.fixture
def gateway(certificates, trust):
    """A gateway in this loop: ``async with gateway(configuration, **settings) as served``."""

    def serve(known, **settings):
        return running(known, certificates, trust, **settings)

    return serve


@pytest.fixture
def call(gateway):
    """A gateway with one policy: ``async with call(recorded, worker={"review": ...}) as served``.

    The policy is of the phase of ``recorded``, a recording. ``worker`` are arguments of ``scripted``, ``fields`` the
    policy's own.
    """

    @asynccontextmanager
    async def put(recorded, *, failure_policy="Fail", settings=None, worker=None, limits=None, **fields):
        about = policy("judge", failurePolicy=failure_policy, settings=settings or {}, **fields)
        phase = {recorded.phase: [about]}
        async with scripted("judge", **(worker or {})) as target:
            known = configuration(source(workers={"scripted": target}, **phase))
            async with gateway(known, transport_limits=limits or TransportLimits()) as served:
                yield served

    return put
