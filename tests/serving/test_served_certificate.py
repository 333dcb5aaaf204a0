"""The served certificate: read again when its files change, however they are replaced; a bad one changes nothing."""

import asyncio
import os
import ssl
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from gateway.serving.http_server import HttpServer
from gateway.serving.served_certificate import ServedCertificate
from gateway.serving.tls import TlsError, read_pair
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.table import CERTIFICATE_EXPIRATION
from tests.authorities import DAY, Authority, now
from tests.caching.world import until
from tests.serving.conftest import Recorder, refuse, routes

AUTHORITY = Authority()
OLD = AUTHORITY.issue("localhost")
NEW = AUTHORITY.issue("localhost", ends=now() + 20 * DAY)
FAILED = "the new TLS certificate cannot be used; the one in use stays"


def files(folder):
    """What reads the pair of a folder."""
    return partial(read_pair, folder / "tls.crt", folder / "tls.key")


def rewritten(folder, pair):
    """As an operator copies them: in place."""
    pair.write(folder)


def renamed(folder, pair):
    """As certbot and rsync do: a new file under the old name."""
    for file in map(Path, pair.write(folder, "new")):
        file.rename(folder / file.name.replace("new", "tls"))


def swapped(folder, pair):
    """As the kubelet does: the link to a directory is replaced."""
    version = folder / f"..{len(list(folder.iterdir()))}"
    version.mkdir()
    pair.write(version)
    (folder / "..tmp").symlink_to(version.name)
    (folder / "..tmp").rename(folder / "..data")
    for name in ("tls.crt", "tls.key"):
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(f"..data/{name}")


@asynccontextmanager
async def watched(folder, interval=0):
    """The certificate in a folder, its metrics, and a server that has it. By default it is read again on request."""
    metrics = Metrics()
    certificate = ServedCertificate(files(folder), (), metrics)
    server = HttpServer(judge=Recorder(), refuse=refuse, routes=routes(None, ()))
    _, port = await server.start("127.0.0.1", 0, certificate.context)
    watching = asyncio.create_task(certificate.watch(interval, server.renew))
    try:
        yield certificate, metrics, port
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        await server.stop()


async def connection(port):
    """A TLS connection: reader, writer, and the certificate that it shows."""
    context = ssl.create_default_context(cadata=AUTHORITY.pem.decode())
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname="localhost")
    return reader, writer, writer.get_extra_info("ssl_object").getpeercert(binary_form=True)


async def post(reader, writer):
    """The status line of a request."""
    writer.write(b"POST /mutate?timeout=10s HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n")
    writer.write(b"Content-Length: 2\r\n\r\n{}")
    return await reader.readline()


def reloads(metrics):
    """How many changes had which result."""
    lines = metrics.exposition()[1].decode().splitlines()
    values = {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if line[:1] != "#"}
    return tuple(
        values[f'admission_gateway_certificate_reloads_total{{result="{each}"}}'] for each in ("loaded", "invalid")
    )


@pytest.mark.parametrize("replace", [rewritten, renamed, swapped])
async def test_new_connections_get_the_renewed_certificate(tmp_path, replace):
    """And an established connection stays, and still serves."""
    replace(tmp_path, OLD)
    async with watched(tmp_path) as (served, metrics, port):
        reader, writer, shown = await connection(port)
        assert shown == ssl.PEM_cert_to_DER_cert(OLD.certificate.decode())
        replace(tmp_path, NEW)
        served.look()
        await until(lambda: reloads(metrics)[0] == 1)
        _, renewed, shown = await connection(port)
        assert shown == ssl.PEM_cert_to_DER_cert(NEW.certificate.decode())
        assert await post(reader, writer) == b"HTTP/1.1 200 OK\r\n"
        for each in (writer, renewed):
            each.close()
    assert reloads(metrics)[1] == 0


@pytest.mark.parametrize(
    ("certificate", "key", "why"),
    [
        (NEW.certificate, OLD.key, "does not belong to the first certificate"),
        (b"nonsense", OLD.key, "no readable PEM certificate"),
        (None, OLD.key, "No such file"),
        (*AUTHORITY.issue("localhost", ends=now() - DAY), "expired on"),
    ],
    ids=["another pair's", "nonsense", "absent", "expired"],
)
async def test_files_that_cannot_be_used_change_nothing(tmp_path, logs, certificate, key, why):
    """The log has the error once, readiness a note, until they can be used again."""
    OLD.write(tmp_path)
    async with watched(tmp_path) as (served, metrics, port):
        (tmp_path / "tls.key").write_bytes(key)
        if certificate is None:
            (tmp_path / "tls.crt").unlink()
        else:
            (tmp_path / "tls.crt").write_bytes(certificate)
        served.look()
        await until(lambda: served.note)
        assert why in served.note
        assert served.problem() is None
        _, writer, shown = await connection(port)
        writer.close()
        assert shown == ssl.PEM_cert_to_DER_cert(OLD.certificate.decode())
        NEW.write(tmp_path)
        served.look()
        await until(lambda: reloads(metrics)[0])
        assert served.note is None
    assert [entry["event"] for entry in logs].count(FAILED) == reloads(metrics)[1] == 1


async def test_the_files_are_polled(tmp_path):
    """Without a request, at the interval of --reload-interval."""
    OLD.write(tmp_path)
    async with watched(tmp_path, interval=0.001) as (served, metrics, _):
        before = served.context
        NEW.write(tmp_path)
        await until(lambda: reloads(metrics)[0] == 1)
        assert served.context is not before


def test_a_change_counts_when_it_rests(tmp_path):
    """Between certificate and key a writer leaves a pair that does not match: it is not tried."""
    OLD.write(tmp_path)
    served = ServedCertificate(files(tmp_path), (), Metrics())
    (tmp_path / "tls.crt").write_bytes(NEW.certificate)
    assert not served._has_changed(False)
    (tmp_path / "tls.key").write_bytes(NEW.key)
    assert [served._has_changed(False) for _ in range(3)] == [False, True, False]


def test_a_touched_file_is_no_change(tmp_path):
    """Contents are compared, not times."""
    OLD.write(tmp_path)
    served = ServedCertificate(files(tmp_path), (), Metrics())
    os.utime(tmp_path / "tls.crt", (1, 1))
    assert [served._has_changed(False) for _ in range(3)] == [False] * 3


def test_the_expiration_is_a_metric(tmp_path):
    """In seconds of Unix time."""
    OLD.write(tmp_path)
    metrics = Metrics()
    ServedCertificate(files(tmp_path), (), metrics)
    text = metrics.exposition()[1].decode()
    name = f"admission_gateway_{CERTIFICATE_EXPIRATION.name}"
    (line,) = [line for line in text.splitlines() if line.startswith(name)]
    assert abs(float(line.split()[1]) - (now() + 10 * DAY).timestamp()) < 3600


def test_a_start_with_unusable_files_fails(tmp_path):
    """There is nothing to serve."""
    with pytest.raises(TlsError, match="No such file"):
        ServedCertificate(files(tmp_path), (), Metrics())


@pytest.mark.parametrize("at_start", [True, False])
def test_a_certificate_that_expires_while_it_is_served_takes_no_replica_away(tmp_path, at_start):
    """All replicas have it: without endpoints users lose the reason. A replica that starts with it is not ready."""
    OLD.write(tmp_path)
    later = now() + 11 * DAY
    times = [later if at_start else now()]
    served = ServedCertificate(files(tmp_path), (), Metrics(), now=lambda: times[0])
    times[0] = later
    assert (served.problem() is None) is not at_start
    assert "expired on" in (served.note or served.problem())


def test_a_replica_whose_certificate_others_have_replaced_is_not_ready(tmp_path):
    """Once its own has expired."""
    OLD.write(tmp_path)
    times = [now()]
    served = ServedCertificate(files(tmp_path), (), Metrics(), now=lambda: times[0])
    assert served.problem(replaced=True) is None
    times[0] += 11 * DAY
    assert "expired on" in served.problem(replaced=True)
