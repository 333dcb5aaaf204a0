"""``python -m deploy.demo [--once]``: docker-compose.yml's services as processes, without a container engine.

With ``--once`` it ends when it has shown that everything is alive; else with Ctrl-C. Exit code 1: something is not.
"""

import argparse
import asyncio
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import aiohttp

from deploy.demo.alive import Alive
from deploy.demo.processes import NotAliveError, Processes
from deploy.demo.services import ROOT, read

FOLDER = ROOT / ".run/demo"


async def show(folder: Path, *, once: bool) -> None:
    """Start everything, show that it is alive, and serve until a signal comes unless it is shown ``once``."""
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - this is a coroutine
    # Also where SIGINT is ignored, as in a shell's background job.
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    services = read()
    print(f"Starting docker-compose.yml's services as processes; their logs are in {_short(folder)} ...", flush=True)
    async with Processes(services, folder) as running, aiohttp.ClientSession() as session:
        for name, seen in await Alive(running, session).wait():
            print(f"  {name + ':':24}{seen}", flush=True)
        for line in _what_to_open(running):
            print(line, flush=True)
        if not once:
            print("Serving until Ctrl-C.", flush=True)
            await asyncio.Event().wait()


def _what_to_open(running: Processes) -> Iterator[str]:
    at = running.machine.addresses
    folder = _short(running.machine.folder)
    yield "Open:"
    yield f"  dashboards of the gateways  http://{at['gateway-1']}:9443/ui/ and http://{at['gateway-2']}:9443/ui/"
    yield f"    with the token of         {folder}/volumes/state/admin.token"
    yield f"  Prometheus (its API only)   http://{at['prometheus']}:9090/api/v1/targets"
    yield f"  traces, as lines of JSON    {folder}/traces.jsonl"
    yield f"  reviews, by the balancer    https://{at['balancer']}:8443/mutate and /validate"
    yield f"    with the certificate of   {folder}/volumes/state/tls/ca.crt"
    yield f"Not here: {' and '.join(running.skipped)}. `docker compose up` has them."


def _short(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--once", action="store_true", help="end when everything has been seen alive")
    given = parser.parse_args()
    try:
        asyncio.run(show(FOLDER, once=given.once))
    except asyncio.CancelledError:
        print("Stopped.")
    except NotAliveError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
