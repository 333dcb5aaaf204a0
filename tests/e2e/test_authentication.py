"""kube-apiserver proves itself to the gateway: with each kind of credentials that its kubeconfig file can have."""

import pytest

from tests.authorities import Authority
from tests.e2e.api_server import PASSWORD, TOKEN, USER
from tests.e2e.client import eventually
from tests.e2e.objects import config_map, pod
from tests.e2e.policies import CONFIG_MAPS, ENTRY, denies, judge
from tests.e2e.test_rollout import CREATES, CREATING, Creates, labels
from tests.integration.running import until

OLD_SECRET, NEW_SECRET = "0123456789abcdef" * 2, "fedcba9876543210" * 2
DENIED = f'admission webhook "{ENTRY}" denied the request: no'


async def authenticated(cluster, api_server, kind, *flags):
    """A gateway with these flags, which kube-apiserver calls with credentials of this kind."""
    cluster.write(validating=[denies("no")])
    gateway = await cluster.start(*flags, "--listen", f"127.0.0.1:{api_server.port(kind)}")
    await cluster.register(gateway.port)
    return gateway


def written(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("kind", ["certificate", "token", "password"])
async def test_kube_apiserver_is_let_in_by_its_credentials(cluster, api_server, tmp_path, kind):
    """By each of three kinds, at a gateway that accepts all three."""
    files = (
        *("--client-ca", written(tmp_path, "ca", api_server.clients.pem), "--client-allowed-name", "kube-apiserver"),
        *("--bearer-token-file", written(tmp_path, "tokens", f"another\n{TOKEN}\n")),
        *("--basic-auth-file", written(tmp_path, "passwords", f"{USER}:another\n{USER}:{PASSWORD}\n")),
    )
    await authenticated(cluster, api_server, kind, *files)
    reply = await cluster.create(pod())
    assert (reply.code, reply.message) == (403, DENIED)


@pytest.mark.parametrize(
    ("kind", "flag", "content", "why"),
    [
        ("token", "--bearer-token-file", f"{TOKEN}x", "the server has asked for the client to provide credentials"),
        ("password", "--basic-auth-file", f"{USER}:p", "the server has asked for the client to provide credentials"),
        ("certificate", "--bearer-token-file", TOKEN, "the server has asked for the client to provide credentials"),
        ("token", "--path-secret-file", OLD_SECRET, "the client has no path secret"),
    ],
)
async def test_wrong_credentials_are_a_failed_call(cluster, api_server, tmp_path, kind, flag, content, why):
    """The gateway refuses the call and counts it; kube-apiserver follows failurePolicy and says why."""
    gateway = await authenticated(cluster, api_server, kind, flag, written(tmp_path, "credentials", content))
    reply = await cluster.create(pod())
    assert reply.code == 500
    assert f'failed calling webhook "{ENTRY}"' in reply.message
    assert why in reply.message
    reason = "forbidden" if flag == "--path-secret-file" else "unauthenticated"
    assert gateway.metric("http_requests_rejected_total", reason=reason) == 1


async def test_a_certificate_without_an_allowed_name_is_refused(cluster, api_server, tmp_path):
    """With the names that it has."""
    ca = written(tmp_path, "ca", api_server.clients.pem)
    await authenticated(cluster, api_server, "certificate", "--client-ca", ca, "--client-allowed-name", "kube")
    reply = await cluster.create(pod())
    assert reply.code == 500
    assert 'the client certificate has "kube-apiserver", none of which is allowed' in reply.message


async def test_a_client_certificate_of_another_ca_is_refused(cluster, api_server, tmp_path):
    """kube-apiserver cannot call the gateway, and says why: the TLS alert reaches it."""
    ca = written(tmp_path, "ca", Authority("others").pem)
    await authenticated(cluster, api_server, "certificate", "--client-ca", ca)
    reply = await cluster.create(pod())
    assert reply.code == 500
    assert reply.message.endswith("remote error: tls: unknown certificate authority")


async def test_credentials_and_path_secrets_are_replaced_without_a_failed_create(cluster, api_server, tmp_path):
    """A token is added and removed while kube-apiserver uses another one; then a path secret replaces all tokens, and
    another one replaces that, while clients create.
    """
    tokens = written(tmp_path, "tokens", TOKEN)
    secrets = written(tmp_path, "secrets", OLD_SECRET)
    rendered = ("--path-secret-file", secrets)
    cluster.write(mutating=[labels()], validating=[judge(rules=CONFIG_MAPS)])
    port = f"127.0.0.1:{api_server.port('token')}"
    flags = ("--bearer-token-file", tokens, *rendered, "--reload-interval", 0.1)
    gateway = await cluster.start(*flags, "--listen", port)
    reads = 0

    async def replaced(path, content):
        nonlocal reads
        (path.with_name("next")).write_text(content)
        (path.with_name("next")).rename(path)
        reads += 1
        await until(lambda: gateway.metric("credential_reloads_total", result="loaded") == reads)
        await creates.more(CREATING)

    await cluster.register(gateway.port)
    async with Creates(cluster) as creates:
        await creates.more(CREATING)
        await replaced(tokens, f"new\n{TOKEN}\n")
        await replaced(tokens, f"{TOKEN}\r\n")
        await cluster.register(gateway.port, flags=rendered)
        await replaced(tokens, "unused")
        await replaced(secrets, f"{OLD_SECRET}\n{NEW_SECRET}\n")
        await replaced(secrets, f"{NEW_SECRET}\n{OLD_SECRET}\n")
        await cluster.register(gateway.port, flags=rendered)
        await replaced(secrets, NEW_SECRET)
    assert creates.failed == []
    assert gateway.metric("http_requests_rejected_total", reason="unauthenticated") == 0


async def test_the_ca_of_client_certificates_is_rotated_without_a_failed_create(
    cluster, api_server, balancer, tmp_path
):
    """Both CAs, then kube-apiserver's new certificate, then the new CA alone, with handshakes throughout.

    kube-apiserver has its new certificate at the gateway's own port, and the old one at the balancer's. (It cannot take
    one while clients create: client-go closes all connections then, with the calls that are under way on them.)
    """
    old, new = api_server.clients.pem, api_server.renewed_clients.pem
    file = written(tmp_path, "ca", old)
    cluster.write(mutating=[labels()], validating=[judge(rules=CONFIG_MAPS)])
    port = f"127.0.0.1:{api_server.port('renewed')}"
    flags = ("--client-ca", file, "--client-allowed-name", "kube-apiserver", "--max-connection-age", 0.5)
    gateway = await cluster.start(*flags, "--reload-interval", 0.1, "--listen", port)
    balancer.add(gateway)
    await until(lambda: balancer.is_ready(gateway))
    reads = gateway.metric("certificate_reloads_total", result="loaded")

    async def trusted(*authorities):
        nonlocal reads
        written(tmp_path, "next", b"".join(authorities)).rename(file)
        reads += 1
        await until(lambda: gateway.metric("certificate_reloads_total", result="loaded") == reads)
        await creates.more(CREATES // 4)

    await cluster.register(balancer.port)
    async with Creates(cluster) as creates:
        await creates.more(CREATES // 4)
        await trusted(old, new)
        await cluster.register(gateway.port)
        await creates.more(CREATES // 4)
        await trusted(new)
    assert creates.lost_none(), creates.failed[:3]

    async def refused():
        # An idle connection from before has one reply left.
        reply = await cluster.create(config_map(), dryRun="All")
        return reply.code == 500 and reply.message.endswith("remote error: tls: unknown certificate authority")

    await cluster.register(balancer.port)
    await eventually(refused)
