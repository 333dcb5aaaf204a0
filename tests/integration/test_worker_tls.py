"""mTLS between a gateway and a worker of the SDK, in a process of its own: all is renewed, nothing is restarted."""

import asyncio
import re
import sys

import pytest
from structlog.testing import capture_logs

from gateway.transports.grpc import endpoint_set as module
from tests.authorities import Authority
from tests.integration.client import message
from tests.integration.running import configuration, policy, source, until
from tests.traffic import recording

VALIDATING = recording("pod-create.1v")

SETTINGS = {"labels": {"app": ""}}

FAILED = ("WORKER_", "CONFIGURATION", "INTERNAL")


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Files are looked at more often than once a second."""
    monkeypatch.setattr(module, "CHECK_SECONDS", 0.05)


class Files:
    """What both sides read. Each is put in its place whole, as a mounted Secret is."""

    def __init__(self, folder):
        self.folder = folder

    def put(self, name, content):
        """Write one."""
        made = self.folder / f"{name}.new"
        made.write_bytes(content)
        made.replace(self.folder / name)

    def issue(self, name, authority, *names):
        """A certificate and its key, one after the other: half of it is never taken."""
        pair = authority.issue(*names)
        self.put(f"{name}.crt", pair.certificate)
        self.put(f"{name}.key", pair.key)

    def trust(self, *authorities):
        """Both sides believe these."""
        self.put("ca.crt", b"".join(authority.pem for authority in authorities))


async def started(folder):
    """The sample worker, on mTLS; and where it listens."""
    flags = [f"--tls-cert={folder}/worker.crt", f"--tls-key={folder}/worker.key", f"--client-ca={folder}/ca.crt"]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "admission_worker.samples", "--listen", "127.0.0.1:0", *flags),
        stderr=asyncio.subprocess.PIPE,
    )
    while True:
        line = (await asyncio.wait_for(process.stderr.readline(), 60)).decode()
        assert line, "the worker ended before it listened"
        if found := re.search(r"listens on (\S+);", line):
            return process, found[1]


async def test_everything_is_renewed_while_it_is_called(gateway, tmp_path):
    """First both sides believe the new authority as well, then both certificates are of the new one, then the old one
    is believed no more. Reviews go on all the time, and none fails.
    """
    old, new = Authority("old"), Authority("new")
    files = Files(tmp_path)
    files.trust(old)
    files.issue("worker", old, "samples")
    files.issue("gateway", old, "gateway")
    process, target = await started(tmp_path)
    tls = {"caFile": "ca.crt", "certFile": "gateway.crt", "keyFile": "gateway.key", "serverName": "samples"}
    judging = policy("judge", worker="samples", policy="required-labels", settings=SETTINGS, timeoutSeconds=20)
    text = source(workers={"samples": {"target": target, "tls": tls}}, validating=[judging])
    try:
        with capture_logs():
            async with gateway(configuration(text, tmp_path)) as served:
                worker = served.gateway.workers._leased["samples"].connection

                async def called_again_and_again():
                    client = await served.client()
                    while True:
                        answered = await client.send(message(VALIDATING))
                        said = answered.body.decode()
                        assert not [word for word in FAILED if word in said], said
                        await asyncio.sleep(0)

                async def replaced():
                    """All connections have been made anew since."""
                    before = set(worker._endpoints.connections())
                    yield
                    await until(
                        lambda: (
                            not before & set(worker._endpoints.connections())
                            and all(each.can_be_called for each in worker._endpoints.connections())
                        )
                    )

                calling = asyncio.create_task(called_again_and_again())
                steps = (
                    lambda: files.trust(old, new),
                    lambda: (files.issue("worker", new, "samples"), files.issue("gateway", new, "gateway")),
                    lambda: files.trust(new),
                )
                for step in steps:
                    async for _ in replaced():
                        step()
                    assert not calling.done(), calling.exception()
                calling.cancel()
                await asyncio.gather(calling, return_exceptions=True)
    finally:
        process.kill()
        await process.wait()
        process._transport.close()
