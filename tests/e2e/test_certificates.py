"""The certificate in a Secret: made once, rotated while clients create, and probed as kube-apiserver sees it."""

import asyncio
import base64
import signal
import ssl
from datetime import UTC, datetime, timedelta

import pytest

from gateway.certificates.content import read_content
from gateway.certificates.rotation import rotation, service_names
from tests.authorities import Authority
from tests.e2e.client import MERGE, eventually
from tests.e2e.cluster import SERVICE_NAMESPACE, service
from tests.e2e.objects import config_map
from tests.e2e.test_rollout import CREATES, CREATING, THIRD, Creates, labels
from tests.integration.running import until

DAY = timedelta(days=1)
NAME_LABEL = "kubernetes.io/metadata.name"
MANAGED = {"app.kubernetes.io/managed-by": "admission-gateway"}


class Certificates:
    """A Service and a Secret of the cluster's own, and replicas that serve it."""

    def __init__(self, cluster, balancer, flags):
        self.cluster, self.balancer = cluster, balancer
        self._flags = flags
        self.replicas = []
        self._metadata = {"namespace": SERVICE_NAMESPACE, "name": cluster.namespace}
        self._object = {"apiVersion": "v1", "kind": "Secret", "metadata": self._metadata}
        self.registration = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": cluster.namespace},
        }

    async def start(self, number=2):
        """So many replicas, at once."""
        started = [self.cluster.start(*self._flags, tls=()) for _ in range(number)]
        self.replicas = await asyncio.gather(*started)
        for each in self.replicas:
            self.balancer.add(each)
        await until(lambda: all(map(self.balancer.is_ready, self.replicas)))

    def keep_registered(self):
        """Have the replicas register themselves, as the chart's do."""
        service = f"{SERVICE_NAMESPACE}/{self.cluster.namespace}:{self.balancer.port}"
        self._flags += ("--service", service, "--register", "--name", self.cluster.namespace)
        self.cluster.write(mutating=[labels(namespaceSelector={"matchLabels": {NAME_LABEL: self.cluster.namespace}})])

    async def registered(self):
        """The caBundle that kube-apiserver has; None: it has no webhook."""
        found = await self.cluster.client.get(self.registration)
        if found.code != 200 or not found.body.get("webhooks"):
            return None
        return base64.b64decode(found.body["webhooks"][0]["clientConfig"]["caBundle"])

    async def register(self):
        """With the CA bundle that is in the Secret now."""
        self.cluster.ca_file.write_bytes((await self.data())["ca.crt"])
        await self.cluster.register(self.balancer.port)

    async def data(self):
        """Of the Secret."""
        found = (await self.cluster.client.get(self._object)).body
        return {key: base64.b64decode(value) for key, value in found["data"].items()}

    async def content(self):
        return read_content(await self.data())

    async def make(self, content):
        """A Secret that somebody made, who wants it unchanged."""
        data = {key: base64.b64encode(value).decode() for key, value in content.data().items()}
        made = await self.cluster.client.create(self._object | {"type": "kubernetes.io/tls", "data": data})
        assert made.code == 201, made

    async def manage(self):
        """Leave the Secret to the gateways."""
        await self._patch({"metadata": {"labels": MANAGED}})
        self.look()

    async def _patch(self, patch):
        path = f"/api/v1/namespaces/{SERVICE_NAMESPACE}/secrets/{self.cluster.namespace}"
        assert (await self.cluster.client.send("PATCH", path, patch, media=MERGE)).code == 200

    async def delete(self):
        await self.cluster.client.delete(self._object)
        self.look()

    def look(self):
        """All replicas look at once, not in some seconds."""
        for each in self.replicas:
            each.process.send_signal(signal.SIGHUP)

    async def shown(self):
        """What each replica shows to a client that trusts the bundle in the Secret."""
        trust = ssl.create_default_context(cadata=(await self.data())["ca.crt"].decode())
        found = set()
        for each in self.replicas:
            host = service_names(SERVICE_NAMESPACE, self.cluster.namespace)[0]
            _, writer = await asyncio.open_connection("localhost", each.port, ssl=trust, server_hostname=host)
            found.add(writer.get_extra_info("ssl_object").getpeercert(binary_form=True))
            writer.close()
        return found

    async def serve(self, certificate):
        """Wait until all replicas show it."""
        der = ssl.PEM_cert_to_DER_cert(certificate.decode())

        async def served():
            return await self.shown() == {der}

        await eventually(served)


@pytest.fixture
async def certificates(cluster, balancer, api_server, tmp_path):
    """With their own Service, and replicas that may do everything."""
    cluster.service, cluster.ca_file = cluster.namespace, tmp_path / "ca.crt"
    assert (await cluster.client.create(service(cluster.namespace))).code == 201
    cluster.write(mutating=[labels()])
    own = f"{SERVICE_NAMESPACE}/{cluster.namespace}"
    file = api_server.kubeconfig(tmp_path)
    made = Certificates(cluster, balancer, ("--kubeconfig", file, "--service", own, "--tls-secret", own))
    yield made
    await cluster.client.delete(made.registration)


def aged(certificates, days, then=0):
    """A content whose CA was made so many days ago, and its certificate later."""
    names = service_names(SERVICE_NAMESPACE, certificates.cluster.namespace)
    now = datetime.now(UTC)
    content = rotation(None, names, (), now - days * DAY).content
    return rotation(content, names, (), now - then * DAY).content if then else content


async def test_replicas_that_start_at_once_make_one_secret(certificates):
    """Which both serve, and kube-apiserver trusts. If it is deleted, it is made again, with the same CA."""
    await certificates.start()
    made = await certificates.data()
    assert len(await certificates.shown()) == 1
    await certificates.register()
    async with Creates(certificates.cluster) as creates:
        await creates.more(2 * CREATING)
        await certificates.delete()
        await eventually(lambda: _is_there(certificates))
        await creates.more(2 * CREATING)
    assert await certificates.data() == made
    assert creates.failed == []


async def _is_there(certificates):
    return (await certificates.cluster.client.get(certificates._object)).code == 200


async def test_a_rotated_certificate_loses_no_create(certificates):
    """It is replaced in the Secret and in both replicas, once, while clients create."""
    await certificates.make(aged(certificates, 70))
    await certificates.start()
    await certificates.register()
    before = await certificates.data()
    async with Creates(certificates.cluster) as creates:
        await creates.more(CREATES // 2)
        assert await certificates.data() == before
        await certificates.manage()

        async def rotated():
            return (await certificates.data())["tls.crt"] != before["tls.crt"]

        await eventually(rotated)
        after = await certificates.data()
        certificates.look()
        await certificates.serve(after["tls.crt"])
        await creates.more(CREATES // 2)
    assert after["ca.crt"] == before["ca.crt"]
    assert creates.lost_none(), creates.failed[:3]


async def test_a_rotated_ca_loses_no_create(certificates):
    """It signs only after it has been in caBundle, beside the one before it, for some seconds."""
    await certificates.make(aged(certificates, 250, 10))
    await certificates.start()
    await certificates.register()
    old = await certificates.content()
    async with Creates(certificates.cluster) as creates:
        await creates.more(THIRD)
        await certificates.manage()

        async def introduced():
            return len((await certificates.content()).bundle) == 2

        await eventually(introduced)
        await creates.more(THIRD)
        assert (await certificates.content()).leaf == old.leaf
        await certificates.register()
        certificates.look()

        async def signed():
            # As every minute and every ten seconds, only sooner.
            certificates.look()
            return (await certificates.content()).leaf != old.leaf

        await eventually(signed)
        after = await certificates.data()
        certificates.look()
        await certificates.serve(after["tls.crt"])
        await creates.more(THIRD)
    new = read_content(after)
    assert new.issuer not in old.bundle
    assert set(new.bundle) == {new.issuer, *old.bundle}
    assert creates.lost_none(), creates.failed[:3]


async def test_a_registered_ca_is_rotated_without_a_lost_create(certificates):
    """As the chart installs it: replicas that keep Secret and registration have the new CA in both before it signs."""
    certificates.keep_registered()
    await certificates.make(aged(certificates, 250, 10))
    await certificates.start()
    old = await certificates.content()

    async def labelled():
        reply = await certificates.cluster.create(config_map(), dryRun="All")
        return reply.code == 201 and reply.body["metadata"].get("labels")

    await eventually(labelled)
    async with Creates(certificates.cluster) as creates:
        await creates.more(THIRD)
        await certificates.manage()

        async def trusted():
            bundle = await certificates.registered()
            return bundle == (await certificates.data())["ca.crt"] and bundle.count(b"BEGIN CERTIFICATE") == 2

        await eventually(trusted)
        await creates.more(THIRD)

        async def signed():
            certificates.look()
            return (await certificates.content()).leaf != old.leaf

        await eventually(signed)
        await certificates.serve((await certificates.data())["tls.crt"])
        await creates.more(THIRD)
    assert creates.lost_none(), creates.failed[:3]


async def test_a_wrong_ca_bundle_is_noticed(certificates):
    """By its probe each replica reports it, with the webhook's name; it stays ready, because all would be unready."""
    await certificates.start(1)
    await certificates.register()
    (replica,) = certificates.replicas
    certificates.look()
    await until(lambda: 'webhook_certificate_expiration_timestamp_seconds{role="ca"}' in replica.admin("/metrics"))
    assert replica.metric("webhook_probe_success") == 1
    for name, days in (("leaf", 90), ("ca", 365)):
        expires = replica.metric("webhook_certificate_expiration_timestamp_seconds", role=name)
        assert abs(datetime.fromtimestamp(expires, UTC) - datetime.now(UTC) - days * DAY) < DAY
    certificates.cluster.ca_file.write_bytes(Authority().pem)
    await certificates.cluster.register(certificates.balancer.port)
    certificates.look()
    await until(lambda: replica.metric("webhook_probe_success") == 0)
    status, page = replica.page("/readyz?verbose")
    assert status == 200
    assert f"[+]webhooks ok: mutatingwebhookconfiguration {certificates.cluster.namespace}, webhook " in page
    assert "its caBundle does not verify the certificate that the Service shows" in page
