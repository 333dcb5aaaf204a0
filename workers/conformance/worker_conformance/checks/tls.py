"""``tls.*``: a worker that serves TLS, with and without clients' certificates."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import grpc

from worker_conformance.certificates import Authority
from worker_conformance.check import Section, readme
from worker_conformance.checks.command import is_refusal, one_line, refused
from worker_conformance.client import connected
from worker_conformance.findings import expect
from worker_conformance.launching import Launcher, Process
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
"""Seconds for an answer that must not come: some workers let whom they do not serve wait."""


async def _says(launcher: Launcher, target: Target, *, in_vain: bool = False) -> str:
    """What a gateway gets from there: a worker's version, or a status; with less patience where it must get nothing."""
    async with connected(target, min(REFUSED, launcher.patience) if in_vain else launcher.patience) as client:
        try:
            return f"version {(await client.describe()).version}"
        except grpc.aio.AioRpcError as error:
            return str(error.code().name)


async def served(launcher: Launcher) -> dict[str, str]:
    """TLS alone: with it, without it, by a client that trusts others; and a new certificate in the old one's place."""
    authority, other = Authority(launcher.folder, "ca"), Authority(launcher.folder, "other-ca")
    async with _serving(launcher, authority, "server") as (_, address):
        trusted = Target(address=address, tls=Tls(ca=authority.cert))
        seen = {
            "trusted": await _says(launcher, trusted),
            "plain": await _says(launcher, Target(address=address), in_vain=True),
            "stranger": await _says(launcher, Target(address=address, tls=Tls(ca=other.cert)), in_vain=True),
        }
        first = await _certificate(trusted)
        authority.issue("server")
        end = asyncio.get_running_loop().time() + launcher.patience
        while (now := await _certificate(trusted)) == first:
            if asyncio.get_running_loop().time() > end:
                break
            await asyncio.sleep(4 * LOOK)
        seen["renewed"] = "the old one" if now == first else "the new one"
        seen["after"] = await _says(launcher, trusted)
        return seen


async def _certificate(target: Target) -> bytes:
    """The certificate that the worker shows, in a fresh handshake."""
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
    "With --tls-cert and --tls-key it serves TLS.",
    readme("PEM files: serve TLS (1.2 and newer)."),
    needs="command",
)
async def serves(worker: Subject) -> None:
    """To a client that trusts its authority."""
    seen = await worker.scene(served)
    expect(seen["trusted"].startswith("version"), "a description over TLS", seen["trusted"])


@section.check(
    "nothing-in-the-clear",
    "Then nobody is served without TLS.",
    readme("PEM files: serve TLS (1.2 and newer)."),
    needs="command",
)
async def nothing_in_the_clear(worker: Subject) -> None:
    """A client without TLS gets nothing."""
    seen = await worker.scene(served)
    expect(not seen["plain"].startswith("version"), "nothing without TLS", seen["plain"])
    expect(not seen["stranger"].startswith("version"), "nothing for a client that trusts others", seen["stranger"])


@section.check(
    "renews",
    "A new certificate in the files' place is used without a restart.",
    readme("The worker reads them again when they change"),
    needs="command",
)
async def renews(worker: Subject) -> None:
    """For new connections."""
    seen = await worker.scene(served)
    expect(seen["renewed"] == "the new one", "the new certificate", f"{seen['renewed']}, {worker.patience:g} s later")
    expect(seen["after"].startswith("version"), "a description with it", seen["after"])


async def mutual(launcher: Launcher) -> dict[str, str]:
    """A worker that wants certificates, and clients with a right one, none, and a stranger's."""
    authority, other = Authority(launcher.folder, "mtls-ca"), Authority(launcher.folder, "mtls-other-ca")
    right, wrong = authority.issue("mtls-client"), other.issue("mtls-stranger")
    async with _serving(launcher, authority, "mtls-server", CLIENT_CA=str(authority.cert)) as (_, address):
        return {
            "right": await _says(
                launcher, Target(address=address, tls=Tls(ca=authority.cert, cert=right.cert, key=right.key))
            ),
            "none": await _says(launcher, Target(address=address, tls=Tls(ca=authority.cert)), in_vain=True),
            "wrong": await _says(
                launcher,
                Target(address=address, tls=Tls(ca=authority.cert, cert=wrong.cert, key=wrong.key)),
                in_vain=True,
            ),
        }


@section.check(
    "mutual",
    "With --client-ca only clients with a certificate of these authorities are served.",
    readme("serve only clients with a certificate of these CAs."),
    needs="command",
)
async def mutual_tls(worker: Subject) -> None:
    """The gateway's certificate, none, and a stranger's."""
    seen = await worker.scene(mutual)
    expect(seen["right"].startswith("version"), "a description for a client with a certificate", seen["right"])
    expect(not seen["none"].startswith("version"), "nothing for a client without a certificate", seen["none"])
    expect(not seen["wrong"].startswith("version"), "nothing for a stranger's certificate", seen["wrong"])


async def unusable(launcher: Launcher) -> tuple[int, list[str]]:
    """A certificate that is none."""
    broken = launcher.folder / "broken.pem"
    broken.write_text("-----BEGIN CERTIFICATE-----\nbm9uZQ==\n-----END CERTIFICATE-----\n")
    return await refused(launcher, TLS_CERT=str(broken), TLS_KEY=str(broken))


@section.check(
    "unusable",
    "A certificate that cannot be used: exit code 1, and one line.",
    readme("1 could not listen (or a certificate could not be used)"),
    needs="command",
)
async def unusable_certificate(worker: Subject) -> None:
    """Not a worker that nobody can connect to."""
    found = await worker.scene(unusable)
    is_refusal(found, 1, "a certificate that cannot be used")
    one_line(found, "a certificate that cannot be used")


async def half(launcher: Launcher) -> tuple[int, list[str]]:
    """Authorities for clients, without a certificate of its own."""
    authority = Authority(launcher.folder, "half-ca")
    return await refused(launcher, CLIENT_CA=str(authority.cert))


@section.check(
    "client-ca-alone",
    "--client-ca without a certificate is refused, never served in the clear.",
    readme("Needs the two above"),
    needs="command",
)
async def client_ca_alone(worker: Subject) -> None:
    """Whoever sets it believes that strangers are kept out."""
    is_refusal(await worker.scene(half), 2, "--client-ca alone")
