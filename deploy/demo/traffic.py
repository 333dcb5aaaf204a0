"""Sends recorded reviews to a gateway at a steady rate: ``traffic.py --url URL --ca FILE FOLDER...``.

A folder has AdmissionReviews, which are sent to both phases, or recordings of tests/recordings, which have theirs. Each
review gets a uid of its own. A line for every second says how many were sent, and what came of them.
"""

import argparse
import asyncio
import contextlib
import itertools
import json
import signal
import ssl
import uuid
from collections import Counter
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import aiohttp

_CONNECTIONS = 8
"""kube-apiserver has one for each webhook; several of them show the balancer at work."""

_PATHS = {"mutating": "mutate", "validating": "validate"}
_TIMEOUT_SECONDS = 10
_FAILED = 500
"""The status' code from which on a refusal is a failure, not a denial."""


def reviews(folders: list[Path]) -> list[tuple[str, dict[str, Any]]]:
    """What is sent: pairs of a path and an AdmissionReview."""
    found = []
    for path in sorted(path for folder in folders for path in folder.glob("*.json")):
        content = json.loads(path.read_text())
        if "request" in content:
            found += [("mutate", content), ("validate", content)]
        else:
            found.append((_PATHS[content["phase"]], json.loads(content["body"])))
    return found


async def send(session: aiohttp.ClientSession, url: str, review: dict[str, Any]) -> str:
    """Send a review; ``allowed``, ``denied``, ``failed``, or ``unanswered``."""
    body = {**review, "request": {**review["request"], "uid": str(uuid.uuid4())}}
    try:
        async with session.post(f"{url}?timeout={_TIMEOUT_SECONDS}s", json=body) as response:
            if response.status != 200:  # noqa: PLR2004
                return "failed"
            answer = (await response.json())["response"]
    except (aiohttp.ClientError, TimeoutError):
        return "unanswered"
    if answer["allowed"]:
        return "allowed"
    return "denied" if answer["status"]["code"] < _FAILED else "failed"


async def report(outcomes: Counter[str]) -> None:
    """Print a line for each second."""
    while True:
        await asyncio.sleep(1)
        print(json.dumps({"sent": outcomes.total(), **outcomes}), flush=True)


async def run(url: str, ca: Path, rate: float, todo: Iterator[tuple[str, dict[str, Any]]]) -> None:
    """Once one is answered, send a review every ``1/rate`` seconds, except while too many are being answered."""
    outcomes: Counter[str] = Counter()
    context = ssl.create_default_context(cafile=ca)
    connector = aiohttp.TCPConnector(ssl=context, limit=_CONNECTIONS)
    timeout = aiohttp.ClientTimeout(total=_TIMEOUT_SECONDS)
    free = asyncio.Semaphore(_CONNECTIONS)

    async def one(path: str, review: dict[str, Any]) -> None:
        async with free:
            outcomes[await send(session, f"{url}/{path}", review)] += 1

    async with (
        aiohttp.ClientSession(connector=connector, timeout=timeout) as session,
        asyncio.TaskGroup() as tasks,
    ):
        while await send(session, f"{url}/{(first := next(todo))[0]}", first[1]) == "unanswered":
            await asyncio.sleep(1)
        tasks.create_task(report(outcomes))
        for path, review in todo:
            if not free.locked():
                tasks.create_task(one(path, review))
            await asyncio.sleep(1 / rate)


async def until_stopped(work: Coroutine[Any, Any, None]) -> None:
    """Await it until a signal says to stop."""
    task = asyncio.ensure_future(work)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await task


def main() -> None:
    """Read the arguments and run until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True, help="of the gateway, without a path")
    parser.add_argument("--ca", type=Path, required=True, help="PEM: the gateway's CA")
    parser.add_argument("--rate", type=float, default=20, help="reviews in a second")
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    given = parser.parse_args()
    asyncio.run(until_stopped(run(given.url, given.ca, given.rate, itertools.cycle(reviews(given.folders)))))


if __name__ == "__main__":
    main()
