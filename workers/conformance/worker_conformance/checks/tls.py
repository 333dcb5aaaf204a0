"""``tls.*``: a worker that serves TLS, with and without clients' certificates."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import grpc

from worker_conformance.certificates import Authority
from worker_conformance.check import Section, readme
from worker_conformance.checks.command import is_start_error, one_line, start_failure
from worker_conformance.client import connected
from worker_conformance.findings import expect
from worker_conformance.processes import Launcher, Process
from worker_conformance.subject import LOOK, Subject
from worker_conformance.target import Target, Tls

section = Section("tls")


@asynccontextmanager
async def _serving(
    launcher: Launcher, authority: Authority, name: str, **variables: str
) -> AsyncIterator[tuple[Process, str]]:
    """A worker that serves TLS on a port, with a certificate of this name, and its address."""
    pair = authority.issue(name)
    environment = {"TLS_CERT": str(pair.cert), "TLS_KEY": str(pair.key)} | variables
    async with launcher.started(listen="127.0.0.1:0", environment=environment) as process:
        yield process, (await process.listening())["address"]


REFUSED = 5.0
"""Seconds to wait for an answer that must not come: some workers do not close a connection that they do not serve."""


async def _describe_result(launcher: Launcher, target: Target, *, rejected: bool = False) -> str:
    """What Describe returns there: the worker's version, or a status. A rejected client waits for a shorter time."""
    async with connected(target, min(REFUSED, launcher.patience) if rejected else launcher.patience) as client:
        try:
            return f"version {(await client.describe()).version}"
        except grpc.aio.AioRpcError as error:
            return str(error.code().name)


async def served(launcher: Launcher) -> dict[str, str]:
    """A client with TLS, one without, one that trusts another CA; and a new certificate in the same files."""
    authority, other = Authority(launcher.folder, "ca"), Authority(launcher.folder, "other-ca")
    async with _serving(launcher, authority, "server") as (_, address):
        trusted = Target(address=address, tls=Tls(ca=authority.cert))
        seen = {
            "trusted": await _describe_result(launcher, trusted),
            "plain": await _describe_result(launcher, Target(address=address), rejected=True),
            "untrusted": await _describe_result(
                launcher, Target(address=address, tls=Tls(ca=other.cert)), rejected=True
            ),
        }
        first = await _certificate(trusted)
        authority.issue("server")
        end = asyncio.get_running_loop().time() + launcher.patience
        while (now := await _certificate(trusted)) == first:
            if asyncio.get_running_loop().time() > end:
                break
            await asyncio.sleep(4 * LOOK)
        seen["renewed"] = "the old one" if now == first else "the new one"
        seen["after"] = await _describe_result(launcher, trusted)
        return seen


async def _certificate(target: Target) -> bytes:
    """The worker's certificate in a new handshake."""
    _, writer = await target.socket()
    try:
        shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    finally:
        writer.close()
        with suppress(OSError, ssl.SSLError):
            await writer.wait_closed()
    return bytes(shown or b"")


@section.check(
    "serves",
    "With --tls-cert and --tls-key the worker serves TLS.",
    readme("PEM files: serve TLS (1.2 and newer)."),
    needs="command",
)
async def serves(worker: Subject) -> None:
    """To a client that trusts its CA."""
    seen = await worker.scenario(served)
    expect(seen["trusted"].startswith("version"), "a description over TLS", seen["trusted"])


@section.check(
    "no-plaintext",
    "A worker that serves TLS does not serve clients without TLS.",
    readme("PEM files: serve TLS (1.2 and newer)."),
    needs="command",
)
async def no_plaintext(worker: Subject) -> None:
    """Nor a client that trusts another CA."""
    seen = await worker.scenario(served)
    expect(not seen["plain"].startswith("version"), "no description without TLS", seen["plain"])
    expect(
        not seen["untrusted"].startswith("version"),
        "no description for a client that trusts another CA",
        seen["untrusted"],
    )


@section.check(
    "reloads-certificates",
    "The worker uses a new certificate without a restart.",
    readme("The worker reads them again when they change"),
    needs="command",
)
async def reloads_certificates(worker: Subject) -> None:
    """For new connections."""
    seen = await worker.scenario(served)
    expect(seen["renewed"] == "the new one", "the new certificate", f"{seen['renewed']}, {worker.patience:g} s later")
    expect(seen["after"].startswith("version"), "a description with it", seen["after"])


async def mutual(launcher: Launcher) -> dict[str, str]:
    """A worker with --client-ca, and clients with a valid certificate, none, and one of another CA."""
    authority, other = Authority(launcher.folder, "mtls-ca"), Authority(launcher.folder, "mtls-other-ca")
    right, wrong = authority.issue("mtls-client"), other.issue("mtls-untrusted")
    async with _serving(launcher, authority, "mtls-server", CLIENT_CA=str(authority.cert)) as (_, address):
        return {
            "right": await _describe_result(
                launcher, Target(address=address, tls=Tls(ca=authority.cert, cert=right.cert, key=right.key))
            ),
            "none": await _describe_result(
                launcher, Target(address=address, tls=Tls(ca=authority.cert)), rejected=True
            ),
            "wrong": await _describe_result(
                launcher,
                Target(address=address, tls=Tls(ca=authority.cert, cert=wrong.cert, key=wrong.key)),
                rejected=True,
            ),
        }


@section.check(
    "mutual",
    "With --client-ca the worker serves only clients with a certificate of these CAs.",
    readme("serve only clients with a certificate of these CAs."),
    needs="command",
)
async def mutual_tls(worker: Subject) -> None:
    """A valid certificate, none, and one of another CA."""
    seen = await worker.scenario(mutual)
    expect(seen["right"].startswith("version"), "a description for a client with a certificate", seen["right"])
    expect(not seen["none"].startswith("version"), "no description for a client without a certificate", seen["none"])
    expect(
        not seen["wrong"].startswith("version"),
        "no description for a client with another CA's certificate",
        seen["wrong"],
    )


async def unusable(launcher: Launcher) -> tuple[int, list[str]]:
    """A PEM file without a certificate."""
    broken = launcher.folder / "broken.pem"
    broken.write_text("-----BEGIN CERTIFICATE-----\nbm9uZQ==\n-----END CERTIFICATE-----\n")
    return await start_failure(launcher, TLS_CERT=str(broken), TLS_KEY=str(broken))


@section.check(
    "invalid-certificate",
    "With an invalid certificate the worker exits with code 1 and logs one line.",
    readme("1 could not listen (or a certificate could not be used)"),
    needs="command",
)
async def unusable_certificate(worker: Subject) -> None:
    """It does not start to serve without one."""
    found = await worker.scenario(unusable)
    is_start_error(found, 1, "an invalid certificate")
    one_line(found, "an invalid certificate")


async def half(launcher: Launcher) -> tuple[int, list[str]]:
    """CAs for clients, without a certificate for the server."""
    authority = Authority(launcher.folder, "half-ca")
    return await start_failure(launcher, CLIENT_CA=str(authority.cert))


@section.check(
    "client-ca-alone",
    "With --client-ca but no certificate the worker exits with code 2 and does not serve.",
    readme("Needs the two above"),
    needs="command",
)
async def client_ca_alone(worker: Subject) -> None:
    """Without TLS it would serve every client."""
    is_start_error(await worker.scenario(half), 2, "--client-ca alone")
