"""The Secret of the certificate: many replicas, one certificate; what others made is never written."""

import asyncio
import base64
import random
from datetime import UTC, datetime, timedelta

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from gateway.certificates.content import fingerprints
from gateway.certificates.rotation import rotation, service_names
from gateway.cluster.certificate_secret import POLL_SECONDS, CertificateSecret
from gateway.cluster.errors import ApiError
from tests.authorities import Authority, now
from tests.cluster.fake_api import FakeApi, FakeClient
from tests.cluster.virtual_time import run

NAMES = service_names("gateways", "gateway")
PATH = "/api/v1/namespaces/gateways/secrets/tls"
START = datetime(2026, 1, 1, tzinfo=UTC)


class Client(FakeClient):
    """A connection whose API server has a clock."""

    clock_skew = timedelta(0)

    def now(self):
        return START + timedelta(seconds=asyncio.get_running_loop().time()) + self.clock_skew

    async def get(self, path):
        return await self.send("GET", path)


@pytest.fixture
def logs():
    """What is logged."""
    with structlog.testing.capture_logs() as captured:
        yield captured


def connection(api, faults=lambda: (0.0, None, 0.0)):
    return Client(api, faults)


class Replica:
    """One that serves what it has read."""

    def __init__(self, client, trusted=()):
        self.client = client
        self.changes = 0
        self._trusted = trusted
        self.secret = CertificateSecret(client, ("gateways", "tls"), NAMES, trusted=self._read_trusted)
        self.secret.subscribe(self._changed)

    async def _read_trusted(self):
        return self._trusted

    def _changed(self):
        self.changes += 1

    async def looks(self, number=1):
        """So many times, until cancelled in a pause."""
        task = asyncio.create_task(self.secret.run())
        await asyncio.sleep(number * POLL_SECONDS - POLL_SECONDS / 2)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return self


def managed(data, **metadata):
    """The gateway's own Secret."""
    labels = {"app.kubernetes.io/managed-by": "admission-gateway"}
    return foreign(data, labels=labels, **metadata)


def foreign(data, **metadata):
    """A Secret."""
    encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
    metadata = {"name": "tls", "namespace": "gateways", "resourceVersion": "7", **metadata}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "kubernetes.io/tls", "data": encoded}


def content():
    return rotation(None, NAMES, (), START).content


@pytest.mark.property
@given(st.integers())
def test_replicas_that_start_at_once_serve_one_certificate(seed):
    """Whatever the order in which their requests arrive: one of them makes the Secret."""
    random_latency = random.Random(seed)

    async def started():
        api = FakeApi()
        replicas = [Replica(connection(api, lambda: (random_latency.random(), None, 0.0))) for _ in range(5)]
        await asyncio.gather(*(each.looks(2) for each in replicas))
        return api, replicas

    api, replicas = run(started())
    assert len({each.secret.pair for each in replicas}) == 1
    assert len({each.secret.bundle for each in replicas}) == 1
    assert api.writes == 1
    assert all(each.secret.exists.is_set() and each.secret.note is None and each.changes == 1 for each in replicas)


@pytest.mark.property
@given(st.integers())
def test_replicas_that_rotate_at_once_rotate_once(seed):
    """Whatever the order, and although requests fail: the CA of the certificate stays trusted."""
    random_faults = random.Random(seed)
    errors = iter(["before", "after"] * 4)  # fewer than a replica looks: it learns in the end what there is

    def faults():
        error = next(errors, None) if random_faults.random() < 0.4 else None
        return random_faults.random(), error, random_faults.random()

    async def rotated():
        api = FakeApi()
        old = rotation(None, NAMES, (), START - timedelta(days=70)).content
        api.objects[PATH] = managed(old.data())
        replicas = [Replica(connection(api, faults)) for _ in range(3)]
        await asyncio.gather(*(each.looks(12) for each in replicas))
        return api, replicas, old

    api, replicas, old = run(rotated())
    assert api.writes == 1
    for each in replicas:
        assert each.secret.pair.certificate != old.data()["tls.crt"]
        assert each.secret.bundle == old.data()["ca.crt"]


def test_a_foreign_secret_is_served_and_never_written():
    """As cert-manager's: its layout is the same, and it has no CA key. It may be expired, too."""
    pair = Authority().issue("gateway.gateways.svc", ends=now())
    data = {"tls.crt": pair.certificate, "tls.key": pair.key, "ca.crt": Authority().pem}

    async def served():
        api = FakeApi()
        api.objects[PATH] = foreign(data)
        return api, await Replica(connection(api)).looks(3)

    api, replica = run(served())
    assert (replica.secret.pair.certificate, replica.secret.pair.key) == (pair.certificate, pair.key)
    assert replica.secret.bundle == data["ca.crt"]
    assert api.writes == 0


@pytest.mark.parametrize("data", [{}, {"tls.key": b"k"}, {"tls.crt": b"", "tls.key": b"k"}])
def test_a_foreign_secret_without_a_certificate_is_waited_for(data, logs):
    """As cert-manager's until it has issued one. What is missing is said once, and how the gateway would make it."""

    async def waited():
        api = FakeApi()
        api.objects[PATH] = foreign(data)
        return api, await Replica(connection(api)).looks(3)

    api, replica = run(waited())
    assert not replica.secret.exists.is_set()
    assert "Secret gateways/tls has no tls.crt" in replica.secret.note
    assert "app.kubernetes.io/managed-by=admission-gateway" in replica.secret.note
    assert [entry["event"] for entry in logs].count("the Secret of the certificate cannot be used") == 1
    assert api.writes == 0


def test_a_deleted_secret_is_made_again_as_it_was():
    """Another CA would be trusted by no webhook."""

    async def deleted():
        api = FakeApi()
        replica = await Replica(connection(api)).looks()
        before = api.objects.pop(PATH)
        await replica.looks()
        return before, api.objects[PATH], replica

    before, after, replica = run(deleted())
    assert after["data"] == before["data"]
    assert replica.changes == 1


@pytest.mark.parametrize("key", ["tls.crt", "tls.key", "ca.crt", "ca.key"])
def test_a_broken_part_of_the_own_secret_is_restored(key, logs):
    """What others have put beside it stays, and the log says what was broken."""

    async def broken():
        api = FakeApi()
        replica = await Replica(connection(api)).looks()
        before = api.objects[PATH]["data"]
        api.objects[PATH]["data"] = before | {key: "!", "other": "AAAA"}
        api.objects[PATH]["metadata"]["annotations"] = {"a": "b"}
        await replica.looks()
        return before, api.objects[PATH]

    before, after = run(broken())
    assert after["data"] == before | {"other": "AAAA"}
    assert after["metadata"]["annotations"] == {"a": "b"}
    assert f"{key} has no readable PEM" in logs[-1]["why"]


def test_what_is_known_is_served_while_the_api_server_is_away():
    """And the note says what failed."""

    async def away():
        api = FakeApi()
        replica = await Replica(connection(api)).looks()
        pair = replica.secret.pair
        replica.client.faults = lambda: (0.0, "before", 0.0)
        await replica.looks()
        assert replica.secret.pair == pair
        note = replica.secret.note
        replica.client.faults = lambda: (0.0, None, 0.0)
        await replica.looks()
        return note, replica

    note, replica = run(away())
    assert "connection refused" in note
    assert replica.secret.note is None


def test_a_certificate_that_may_not_be_rotated_is_served():
    """Without the permission to update; the API server's words name verb and resource."""
    forbidden = 'secrets "tls" is forbidden: User "u" cannot update resource "secrets" in API group ""'

    async def refused():
        api = FakeApi()
        old = rotation(None, NAMES, (), START - timedelta(days=70)).content
        api.objects[PATH] = managed(old.data())
        client = connection(api)

        async def get_only(method, path, body=None, **options):
            if method != "GET":
                raise ApiError(f"{method} {path}", 403, "Forbidden", forbidden)
            return await FakeClient.send(client, method, path, body, **options)

        client.send = get_only
        return old, await Replica(client).looks(2)

    old, replica = run(refused())
    assert replica.secret.pair.certificate == old.data()["tls.crt"]
    assert 'cannot update resource "secrets"' in replica.secret.note


@pytest.mark.parametrize(("skew", "side"), [(timedelta(hours=2), "behind"), (timedelta(days=-900), "ahead of")])
def test_a_wrong_clock_is_reported_and_does_not_count(skew, side):
    """The API server's clock judges certificates."""

    async def skewed():
        api = FakeApi()
        api.objects[PATH] = managed(content().data())
        client = connection(api)
        client.clock_skew = skew
        client.now = lambda: START
        return api, await Replica(client).looks(3)

    api, replica = run(skewed())
    assert api.writes == 0
    assert f"{side} the API server's" in replica.secret.note


def test_a_new_ca_signs_once_it_is_trusted():
    """First it is in the bundle only, beside the one in use."""

    async def rotated():
        api = FakeApi()
        first = rotation(None, NAMES, (), START - timedelta(days=250)).content
        old = rotation(first, NAMES, (), START - timedelta(days=50)).content
        api.objects[PATH] = managed(old.data())
        trusted = [fingerprints(old.data()["ca.crt"])]
        replica = await Replica(connection(api), trusted).looks(2)
        assert replica.secret.pair.certificate == old.data()["tls.crt"]
        both = fingerprints(replica.secret.bundle)
        assert len(both) == 2
        assert trusted[0] < both
        trusted[:] = [both]
        await replica.looks()
        return replica, old

    replica, old = run(rotated())
    assert replica.secret.pair.certificate != old.data()["tls.crt"]
    assert len(fingerprints(replica.secret.bundle)) == 2
    assert replica.changes == 3
