"""``admission-gateway demo``: demonstrates the gateway on this machine with real requests.

A gateway over TLS with development certificates, the sample policies in a real gRPC worker that the gateway starts, and
recorded requests of a real kube-apiserver, sent as it sends them: first to /mutate, then the mutated object to
/validate.
"""

import asyncio
import os
import signal
import ssl
import sys
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import aiohttp
import click
import msgspec
import uvloop
from msgspec.structs import replace

from gateway.cli.configuration import loaded
from gateway.cli.demo_output import DeniedReview, closing, narrate, next_steps, opening
from gateway.cli.standard_streams import COULD_NOT, fail, note
from gateway.engine.decision import Decision, Outcome
from gateway.policies.model import Configuration, Phase
from gateway.serving.acceptor import ListenError
from gateway.serving.app import Gateway
from gateway.serving.development_certificates import CertificateError
from gateway.serving.lifecycle import serve_until
from gateway.serving.settings import Settings
from gateway.serving.tls import TlsError
from gateway.sources.files import SourceError, read
from gateway.telemetry.logs import configure_logs

_ONCE: Final = "Without --once it continues to serve, and prints how to send your own reviews."


def run(**values: Any) -> None:
    """See the command."""
    examples: Path = values["examples"] or _own_examples()
    stop_logs = configure_logs(level="warning", form="text")
    answered = False
    try:
        reviews = _reviews(examples / "reviews")
        configuration = loaded(read((examples / "policies",)))
        settings = Settings(
            listen=values["listen"],
            admin_listen=values["admin_listen"],
            tls_dev_dir=values["tls_dev_dir"],
            worker_startup_timeout=15.0,
            drain_seconds=0.0,
        )
        once = values["once"] or bool(os.environ.get("CI"))
        answered = uvloop.run(_show(configuration, settings, reviews, once=once))
    except (SourceError, TlsError, CertificateError, ListenError, aiohttp.ClientError) as error:
        fail(str(error), COULD_NOT)
    finally:
        stop_logs()
    sys.exit(0 if answered else COULD_NOT)


def _own_examples() -> Path:
    """Beside this module in a wheel, else in its checkout; relative to the working directory if possible."""
    here = Path(__file__).resolve()
    found = next(place for place in (here.parent / "examples", here.parents[2] / "examples") if place.is_dir())
    return found.relative_to(Path.cwd()) if found.is_relative_to(Path.cwd()) else found


def _reviews(folder: Path) -> list[Path]:
    found = sorted(folder.glob("*.json"))
    if not found:
        raise SourceError(f"no reviews in {folder}; --examples must be a directory with policies/ and reviews/")
    return found


class _Listener:
    """Keeps the decisions of the reviews that were sent."""

    def __init__(self) -> None:
        self.decisions: dict[str, Decision] = {}

    def decided(self, decision: Decision) -> None:
        self.decisions[decision.request.uid] = decision


async def _show(configuration: Configuration, settings: Settings, reviews: list[Path], *, once: bool) -> bool:
    listener = _Listener()
    note("Starting the gateway and its worker ...")
    gateway, (host, port), admin = await _started(configuration, settings, listener)
    try:
        assert gateway.certificates is not None  # noqa: S101 - settings name a directory for them
        ca = gateway.certificates.ca_file
        url = f"https://{host}:{port}"
        for line in opening(configuration, gateway, url):
            click.echo(line)
        context = ssl.create_default_context(cafile=ca)
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session:
            sent = await _send_all(session, url, reviews, listener)
            decisions = tuple(listener.decisions.values())
            again = [decision async for decision in _both_phases(session, url, reviews[0].read_bytes(), listener)]
        steps = next_steps(url, ca, f"http://{admin[0]}:{admin[1]}", reviews[0], _last_denied(sent))
        for line in (*closing(decisions, again), *([_ONCE] if once else steps)):
            click.echo(line)
        if not once:
            # Only from here on: before, Ctrl-C ends it like other programs.
            stop = asyncio.Event()
            for number in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(number, stop.set)
            click.echo("Serving until Ctrl-C.")
            await serve_until(stop, gateway)
    finally:
        await gateway.stop(drain=False)
    return all(sent.values())


async def _started(
    configuration: Configuration, settings: Settings, listener: _Listener
) -> tuple[Gateway, tuple[str, int], tuple[str, int]]:
    """A started gateway, on free ports if the usual ones are taken."""
    for attempt in (settings, replace(settings, listen=(settings.listen[0], 0), admin_listen=("127.0.0.1", 0))):
        gateway = Gateway(configuration, attempt, consumers=(listener,))
        try:
            front, admin = await gateway.start()
        except ListenError:
            if attempt is settings:
                continue
            raise
        return gateway, front, admin
    raise AssertionError("the second attempt returns or raises")


async def _send_all(
    session: aiohttp.ClientSession, url: str, reviews: list[Path], listener: _Listener
) -> dict[Path, list[Decision]]:
    sent = {}
    for number, path in enumerate(reviews, 1):
        sent[path] = [decision async for decision in _both_phases(session, url, path.read_bytes(), listener)]
        for line in narrate(number, path, sent[path]):
            click.echo(line)
    return sent


def _last_denied(sent: dict[Path, list[Decision]]) -> DeniedReview | None:
    for path, decisions in reversed(sent.items()):
        for decision in decisions:
            if decision.outcome is Outcome.DENIED and decision.phase is Phase.VALIDATING:
                recorded = msgspec.json.decode(path.read_bytes())["request"]["uid"]
                return DeniedReview(path=path, recorded_uid=recorded, uid=decision.request.uid)
    return None


async def _both_phases(
    session: aiohttp.ClientSession, url: str, body: bytes, listener: _Listener
) -> AsyncIterator[Decision]:
    """The decision of the mutating phase, and if that allows, of the validating one on the mutated object."""
    review = msgspec.json.decode(body)
    mutated = await _send(session, f"{url}/mutate", review, listener)
    if mutated is None:
        return
    yield mutated
    if mutated.response.allowed:
        request = {**review["request"], "object": mutated.object}
        validated = await _send(session, f"{url}/validate", {**review, "request": request}, listener)
        if validated is not None:
            yield validated


async def _send(session: aiohttp.ClientSession, url: str, review: Any, listener: _Listener) -> Decision | None:
    """With a new uid, as kube-apiserver makes one for each call; the recorded one is left to whom sends the file."""
    body = msgspec.json.encode({**review, "request": {**review["request"], "uid": str(uuid.uuid4())}})
    headers = {"Content-Type": "application/json"}
    async with session.post(f"{url}?timeout=10s", data=body, headers=headers) as response:
        answer = await response.read()
        if response.status != 200:  # noqa: PLR2004 - HTTP's own number
            note(f"{url}: {response.status} {answer.decode(errors='replace').strip()}", fg="red")
            return None
    return listener.decisions[msgspec.json.decode(answer)["response"]["uid"]]
