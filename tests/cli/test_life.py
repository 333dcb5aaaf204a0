"""A gateway's life as an operator sees it: flags from the environment, certificates, the drain, the end."""

import asyncio
import fcntl
import os
import signal
import ssl
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.integration.client import AsyncClient, Client, message, post
from tests.integration.process import WAIT_SECONDS
from tests.integration.running import policy, source, until
from tests.integration.workers import Gate, Hanging, deny, scripted
from tests.traffic import recording

REVIEW = message(recording("pod-create.1v"))
SECOND_SIGNAL = "stopping: serving until no client is connected"


async def in_thread(function, *arguments, **named):
    """A blocking call, without stopping this loop and the worker in it."""
    return await asyncio.to_thread(function, *arguments, **named)


# -------------------------------------------------------------------------------------------------- flags


def test_every_flag_is_an_environment_variable(serve, policies, certificates, trust):
    """Without flags, the environment sets everything: policies, certificate, limits, log."""
    process = serve(
        tls=(),
        env={
            "ADMISSION_GATEWAY_POLICIES": str(policies),
            "ADMISSION_GATEWAY_TLS_CERT": str(certificates.cert_file),
            "ADMISSION_GATEWAY_TLS_KEY": str(certificates.key_file),
            "ADMISSION_GATEWAY_WORKER_STARTUP_TIMEOUT": "0",
            "ADMISSION_GATEWAY_LIMIT_BODY_BYTES": "100",
            "ADMISSION_GATEWAY_LOG_LEVEL": "error",
        },
    ).ready()
    with Client(process.port, trust) as client:
        assert client.send(REVIEW).response["status"]["code"] == 413
    process.stop()
    assert process.log() == []


def test_several_policy_paths_are_one_configuration(serve, tmp_path, trust):
    """--policies may be repeated, and its variable may hold several paths: together they are one configuration."""
    (tmp_path / "workers.yaml").write_text(source(workers={"scripted": f"unix:{tmp_path}/w.sock"}))
    (tmp_path / "policies.yaml").write_text(source(workers={}, validating=[policy("judge")]))
    paths = f"{tmp_path}/workers.yaml:{tmp_path}/policies.yaml"
    process = serve("--worker-startup-timeout", 0, env={"ADMISSION_GATEWAY_POLICIES": paths}).ready()
    with Client(process.port, trust) as client:
        assert "CONFIGURATION: worker 'scripted'" in client.send(REVIEW).response["status"]["message"]


def test_a_flag_wins_over_its_variable(serve, policies):
    """Where both are given, the flag counts."""
    process = serve(
        "--policies",
        policies,
        "--worker-startup-timeout",
        0,
        "--log-level",
        "info",
        env={"ADMISSION_GATEWAY_LOG_LEVEL": "error"},
    ).ready()
    process.terminate()
    assert process.logged(SECOND_SIGNAL)["level"] == "info"


def test_a_log_as_text(serve, policies):
    """--log-format text writes lines for people, without colours where there is no terminal."""
    process = serve("--policies", policies, "--worker-startup-timeout", 0, "--log-format", "text").ready()
    process.terminate()
    line = process.err.find(lambda line: SECOND_SIGNAL in line)
    assert "[info" in line
    assert "\x1b" not in line


# -------------------------------------------------------------------------------------------------- certificates


def test_the_ca_bundle_that_is_printed_is_enough(serve, policies, tmp_path):
    """Who knows nothing but the printed caBundle can trust the gateway under its names; a second start keeps it."""
    flags = ("--policies", policies, "--worker-startup-timeout", 0)
    tls = ("--tls-dev-dir", tmp_path / "dev", "--tls-dev-name", "gateway.admission.svc")
    first = serve(*flags, tls=tls).ready()
    trust = first.trust
    with Client(first.port, trust) as client:
        assert client.send(REVIEW).status == 200
    second = serve(*flags, tls=tls).ready()
    with Client(second.port, trust) as client:
        assert client.send(REVIEW).status == 200
        names = client.certificate()["subjectAltName"]
    assert ("DNS", "gateway.admission.svc") in names


def test_another_ca_is_not_trusted(serve, policies, tmp_path, trust):
    """Development certificates are of a CA of their own: who trusts another does not connect, and that is logged."""
    process = serve(
        "--policies", policies, "--worker-startup-timeout", 0, tls=("--tls-dev-dir", tmp_path / "dev")
    ).ready()
    with pytest.raises(ssl.SSLCertVerificationError):
        Client(process.port, trust)
    assert "caBundle" in process.logged("a request was refused", refusal="tls")["why"]


def issue(folder, name):
    """A CA, and a client's certificate and key that it signed, as files."""
    now = datetime.now(UTC)

    def certificate(common_name, key, issuer, signer, *, ca):
        return (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)]))
            .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(hours=1))
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
            .sign(signer, hashes.SHA256())
        )

    authority, client = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    files = {}
    for kind, made in (
        ("ca", certificate(name, authority, name, authority, ca=True)),
        ("crt", certificate("apiserver", client, name, authority, ca=False)),
    ):
        files[kind] = folder / f"{name}.{kind}"
        files[kind].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    files["key"] = folder / f"{name}.key"
    files["key"].write_bytes(
        client.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return files


def test_a_client_ca_lets_in_only_its_own(serve, policies, tmp_path, certificates):
    """With --client-ca a client with a certificate of that CA is served; without one, or of another CA, it is not."""
    ours, theirs = issue(tmp_path, "ours"), issue(tmp_path, "theirs")
    process = serve("--policies", policies, "--worker-startup-timeout", 0, "--client-ca", ours["ca"]).ready()

    def connected(bring):
        context = ssl.create_default_context(cafile=certificates.ca_file)
        if bring is not None:
            context.load_cert_chain(bring["crt"], bring["key"])
        with Client(process.port, context) as client:
            return client.send(REVIEW).status

    assert connected(ours) == 200
    for bring, why in ((None, "brought none"), (theirs, "is not of the CA")):
        with pytest.raises(OSError):
            connected(bring)
        entry = process.err.find(lambda line, why=why: why in line)
        assert '"refusal": "tls"' in entry
    assert connected(ours) == 200
    assert process.internal_errors() == []


def test_a_lost_certificate_is_a_note_of_readiness(serve, policies, certificates, tmp_path, trust):
    """If the certificate's file is gone, /readyz?verbose has the file and why; the loaded one is still served."""
    copy = tmp_path / "tls.crt"
    copy.write_bytes(certificates.cert_file.read_bytes())
    tls = ("--tls-cert", copy, "--tls-key", certificates.key_file, "--reload-interval", 0.01)
    process = serve("--policies", policies, "--worker-startup-timeout", 0, tls=tls).ready()
    copy.unlink()
    process.logged("the new TLS certificate cannot be used; the one in use stays")
    status, text = process.page("/readyz?verbose")
    assert status == 200
    assert "[+]certificate ok: the new certificate cannot be used" in text
    assert "No such file" in text
    assert process.metric("certificate_reloads_total", result="invalid") == 1
    with Client(process.port, trust) as client:
        assert client.send(REVIEW).status == 200


# -------------------------------------------------------------------------------------------------- who may call


def test_credentials_are_read_again_on_sighup(serve, policies, tmp_path, trust):
    """A file that cannot be used is a note of readiness, and changes nothing."""
    tokens = tmp_path / "tokens"
    tokens.write_text("old")
    flags = ("--worker-startup-timeout", 0, "--reload-interval", 0, "--bearer-token-file", tokens)
    process = serve("--policies", policies, *flags).ready()

    def status(token):
        head, _, body = REVIEW.partition(b"\r\n\r\n")
        with Client(process.port, trust) as client:
            return client.send(b"%b\r\nAuthorization: Bearer %b\r\n\r\n%b" % (head, token, body)).status

    def reread(content, message):
        tokens.write_text(content)
        process.process.send_signal(signal.SIGHUP)
        process.logged(message)

    assert (status(b"old"), status(b"new")) == (200, 401)
    reread("", "the new credentials cannot be used; those read before stay valid")
    ready = process.admin("/readyz?verbose")
    assert "[+]credentials ok: the credentials read before stay valid, because the file cannot be used: " in ready
    assert status(b"old") == 200
    reread("new", "requests are checked against the new credentials")
    assert (status(b"old"), status(b"new")) == (401, 200)
    assert "[+]credentials ok\n" in process.admin("/readyz?verbose")


def test_a_purge_needs_a_token_where_there_are_some(serve, policies, tmp_path, run_process):
    """Also on this machine; the command takes the file from the environment that it shares with the gateway."""
    (tmp_path / "tokens").write_text("one\ntwo")
    flags = ("--worker-startup-timeout", 0, "--admin-token-file", tmp_path / "tokens")
    process = serve("--policies", policies, *flags).ready()
    env = {"ADMISSION_GATEWAY_ADMIN": f"http://127.0.0.1:{process.admin_port}"}
    refused = run_process("purge", "a/b", env=env)
    assert (refused.code, refused.err) == (
        2,
        'error: "/purge" needs a token of --admin-token-file, as Authorization: Bearer\n',
    )
    accepted = run_process("purge", "a/b", env=env | {"ADMISSION_GATEWAY_ADMIN_TOKEN_FILE": str(tmp_path / "tokens")})
    assert (accepted.code, "no policy with a cache" in accepted.err or "has no cache" in accepted.err) == (1, True)
    assert process.admin("/livez") == "ok\n"


def test_listening_to_all_without_credentials_is_warned_of(serve, policies):
    """At the start, with the flags to set."""
    open_to_all = serve("--policies", policies, "--worker-startup-timeout", 0, "--listen", ":0")
    why = open_to_all.logged("clients need no credentials", level="warning")["why"]
    assert "set --client-ca, --bearer-token-file, --basic-auth-file or --path-secret-file" in why


# -------------------------------------------------------------------------------------------------- the end


async def test_a_gateway_that_is_starting_can_be_stopped(serve, tmp_path):
    """SIGTERM while the start still waits for a worker: exit code 0 at once, and nothing was served."""
    describe = Hanging()
    async with scripted(describe=describe) as target:
        path = tmp_path / "policies.yaml"
        path.write_text(source(workers={"scripted": target}, validating=[policy("judge")]))
        process = serve("--policies", path, "--worker-startup-timeout", 600, "--limit-describe-seconds", 600)
        async with asyncio.timeout(WAIT_SECONDS):
            await describe.called.wait()
        process.terminate()
        assert await in_thread(process.exit_code) == 0
        assert process.out.all() == []
        assert process.internal_errors() == []


def test_an_unused_gateway_stops_at_once(serve, policies):
    """SIGTERM, no connections: exit code 0, without waiting for the drain's end."""
    process = serve("--policies", policies, "--worker-startup-timeout", 0, "--drain", 600).ready()
    process.terminate()
    assert process.exit_code() == 0
    assert process.internal_errors() == []


@asynccontextmanager
async def draining(serve, tmp_path, trust, review, number=signal.SIGTERM):
    """A gateway that gets a signal while the worker judges, as ``review`` does; and the client that waits for it."""
    async with scripted("judge", review=review) as target:
        path = tmp_path / "policies.yaml"
        path.write_text(source(workers={"scripted": target}, validating=[policy("judge", timeoutSeconds=30)]))
        process = await in_thread(
            lambda: serve("--policies", path, "--worker-startup-timeout", 30, "--drain", 600).ready()
        )
        client = await AsyncClient.connect(process.port, trust)
        client.sendall(REVIEW.replace(b"timeout=10s", b"timeout=30s"))
        async with asyncio.timeout(WAIT_SECONDS):
            await review.called.wait()
        process.process.send_signal(number)
        await in_thread(process.logged, SECOND_SIGNAL)
        yield process, client


async def test_a_review_in_flight_is_answered_before_the_end(serve, tmp_path, trust):
    """After SIGTERM the review in flight is answered, its answer ends the connection, and the exit code is 0."""
    review = Gate(deny("at last"))
    async with draining(serve, tmp_path, trust, review) as (process, client):
        assert process.process.poll() is None
        review.open.set()
        answered = await client.answer()
        assert answered.response["status"]["message"] == "at last"
        assert answered.headers["connection"] == "close"
        await client.close()
        assert await in_thread(process.exit_code) == 0
        assert process.internal_errors() == []


def test_a_draining_gateway_serves_on(serve, policies, trust):
    """While it drains, a kept connection gets its answers, each with Connection: close; so do new connections."""
    process = serve("--policies", policies, "--worker-startup-timeout", 0, "--drain", 600).ready()
    with Client(process.port, trust) as kept, Client(process.port, trust) as other:
        process.terminate()
        process.logged(SECOND_SIGNAL)
        assert kept.send(REVIEW).headers["Connection"] == "close"
        with Client(process.port, trust) as new:
            assert new.send(REVIEW).headers["Connection"] == "close"
        assert other.send(post(b"{}", "/nowhere")).status == 404
    assert process.exit_code() == 0


def test_a_gateway_serves_for_its_shutdown_delay(serve, policies, trust):
    """Without any connection it does not end either: endpoints may still lead clients here. /readyz fails meanwhile."""
    flags = ("--worker-startup-timeout", 0, "--drain", 600, "--shutdown-delay", 600)
    process = serve("--policies", policies, *flags).ready()
    process.terminate()
    process.logged(SECOND_SIGNAL)
    status, text = process.page("/readyz")
    assert (status, "[-]shutdown failed: the gateway is shutting down\n" in text) == (503, True)
    with Client(process.port, trust) as client:
        reply = client.send(REVIEW)
        assert (reply.status, reply.headers["Connection"]) == (200, "close")
    assert process.metric("connections_ended_total", reason="drain") == 1
    process.terminate()
    assert process.exit_code() == 0
    assert process.internal_errors() == []


def test_an_interrupt_waits_for_no_client(serve, policies, trust):
    """Ctrl-C (SIGINT), with an idle connection: exit code 0 without the drain."""
    process = serve("--policies", policies, "--worker-startup-timeout", 0, "--drain", 600).ready()
    with Client(process.port, trust) as idle:
        assert idle.send(REVIEW).status == 200
        process.process.send_signal(signal.SIGINT)
        assert process.exit_code() == 0
    assert process.internal_errors() == []


async def test_an_interrupt_waits_for_reviews(serve, tmp_path, trust):
    """A review in flight is answered before the end."""
    review = Gate(deny("at last"))
    async with draining(serve, tmp_path, trust, review, signal.SIGINT) as (process, client):
        review.open.set()
        assert (await client.answer()).response["status"]["message"] == "at last"
        await client.close()
        assert await in_thread(process.exit_code) == 0
        assert process.internal_errors() == []


def test_a_second_signal_ends_the_drain(serve, policies, trust):
    """With an idle connection that stays open, the drain would continue; a second SIGTERM ends it, exit code 0."""
    process = serve("--policies", policies, "--worker-startup-timeout", 0, "--drain", 600).ready()
    with Client(process.port, trust):
        process.terminate()
        process.logged(SECOND_SIGNAL)
        process.terminate()
        assert process.exit_code() == 0
    assert process.internal_errors() == []


async def test_a_second_signal_does_not_wait_for_workers(serve, tmp_path, trust):
    """A review whose worker hangs is decided by its failure policy at the second SIGTERM, and the gateway ends."""
    review = Gate()
    async with draining(serve, tmp_path, trust, review) as (process, client):
        process.terminate()
        async with asyncio.timeout(WAIT_SECONDS):
            status = (await client.answer()).response["status"]
        assert (status["code"], status["reason"]) == (500, "InternalError")
        assert "had to stop at once" in status["message"]
        await client.close()
        assert await in_thread(process.exit_code) == 0
        assert process.internal_errors() == []


def test_its_workers_end_with_it(serve, tmp_path):
    """Workers that the gateway started are gone when it has ended, and so are their sockets."""
    folder = tmp_path / "policies"
    folder.mkdir()
    grpc = {"target": "unix:samples.sock", "command": ["python", "-m", "admission_worker.samples"]}
    (folder / "workers.yaml").write_text(source(workers={"samples": grpc}))
    process = serve("--policies", folder, "--worker-startup-timeout", 30).ready()
    (worker,) = process.children()
    process.terminate()
    assert process.exit_code() == 0
    assert not lives(worker)
    assert [path.name for path in folder.iterdir()] == ["workers.yaml"]


def lives(pid):
    """Whether a process still is, and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def test_workers_end_even_when_it_is_killed(serve, tmp_path):
    """A gateway that is killed takes its workers with it: their standard input ends."""
    grpc = {"target": "unix:samples.sock", "command": ["python", "-m", "admission_worker.samples"]}
    (tmp_path / "workers.yaml").write_text(source(workers={"samples": grpc}))
    process = await in_thread(
        lambda: serve("--policies", tmp_path / "workers.yaml", "--worker-startup-timeout", 30).ready()
    )
    (worker,) = process.children()
    process.process.kill()
    await in_thread(process.exit_code)
    await until(lambda: not lives(worker))


def test_an_unread_log_stops_nothing(serve, policies, trust):
    """If the reader of standard error stalls, the gateway continues to serve, and ends on SIGTERM with exit code 0."""
    reading, writing = os.pipe()
    # One page: a few lines fill it, and the next one waits for ever.
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    process = serve("--policies", policies, "--worker-startup-timeout", 0, stderr=writing).ready()
    os.close(writing)
    try:
        with Client(process.port, trust) as client:
            assert {client.send(post(b"no review")).status for _ in range(100)} == {400}
            assert client.send(REVIEW).status == 200
        process.terminate()
        assert process.exit_code() == 0
    finally:
        os.close(reading)
