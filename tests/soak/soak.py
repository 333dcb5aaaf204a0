"""``make soak``: everything of docker-compose.yml for ten minutes, under traffic, intruders and kills, stays as small.

Every service runs as a process (deploy/demo). One after another, each but the gateways and their balancer is killed;
clients that do what none should come all the time (``Intruders``); meanwhile memory, file descriptors and threads of
both gateways and of the bridge are measured, and what waits in Redis. At the end each must be flat (``measures``), no
review may have been without an answer, and without kills and intruders everything in flight must end.

Prints a line for each minute. Exit code 1: something grew, was left, or went unanswered; the lines say what.
"""

import argparse
import asyncio
import contextlib
import os
import signal
import sys
from dataclasses import replace
from itertools import cycle

import aiohttp
import click
import redis.asyncio

from deploy.demo.alive import Alive
from deploy.demo.processes import NotAliveError, Processes
from deploy.demo.services import ROOT, read
from tests.soak.intruders import Intruders
from tests.soak.measures import PARTS, findings, measured

FOLDER = ROOT / ".run/soak"

REVIEWS_A_SECOND = 60
"""A tenth of what the two gateways can do on one core: other work may go on beside the soak."""

SAMPLE_SECONDS = 5
KILL_SECONDS = 15
INTRUDER_PAUSE_SECONDS = 0.1
QUIET_SECONDS = 60

WATCHED = ("gateway-1", "gateway-2", "bridge-rust")
KILLED = ("worker-go", "redis", "worker-python", "queue", "worker-java", "collector", "worker-node", "worker-rust")
"""Not the bridge, which is watched: tests/demo/test_demo.py kills it."""

IN_FLIGHT = (
    "reviews_in_flight",
    "body_bytes_in_flight",
    "worker_calls_in_flight",
    "queue_length",
    "dashboard_streams",
)


class Soak:
    """One soak of running processes. ``faults``: what has been found wrong, in words."""

    def __init__(self, running, session):
        self.faults = []
        self._running = running
        self._session = session
        self._alive = Alive(running, session)
        self._series = {name: [] for name in WATCHED}
        self._pids = {name: running.pids[name] for name in WATCHED}
        state = running.machine.folder / "volumes/state"
        self._intruders = [
            Intruders(
                running.machine.addresses[name],
                ca=state / "tls/ca.crt",
                token=(state / "admin.token").read_text().strip(),
            )
            for name in WATCHED[:2]
        ]
        self._kills = 0

    async def run(self, minutes):
        """All of it; what is wrong is in ``faults`` then."""
        await self._alive.wait()
        async with _beside(self._kill(), *(each.come(INTRUDER_PAUSE_SECONDS) for each in self._intruders)) as tasks:
            for number in range(int(minutes * 60 / SAMPLE_SECONDS)):
                if number % (60 // SAMPLE_SECONDS) == 0:
                    click.echo(self._line(number * SAMPLE_SECONDS / 60))
                for name, pid in self._pids.items():
                    self._series[name].append(measured(pid))
                await asyncio.sleep(SAMPLE_SECONDS)
                for task in tasks:
                    if task.done():
                        task.result()
        click.echo(self._line(minutes))
        await self._judge()

    async def _kill(self):
        for name in cycle(KILLED):
            await asyncio.sleep(KILL_SECONDS)
            with contextlib.suppress(ProcessLookupError):  # it ended, and is started again in a moment
                os.kill(self._running.pids[name], signal.SIGKILL)
            self._kills += 1

    def _line(self, minute):
        now = {name: measured(pid) for name, pid in self._pids.items()}
        seen = ", ".join(f"{name} {m.memory / 1e6:.0f} MB {m.descriptors} fd" for name, m in now.items())
        outcomes = ", ".join(f"{count} {name}" for name, count in sorted(self._alive.outcomes().items()))
        intruders = sum(sum(each.done.values()) for each in self._intruders)
        return f"{minute:4.0f} min  {seen}; {outcomes}; {intruders} intruders, {self._kills} kills"

    async def _judge(self):
        for name, series in self._series.items():
            if self._running.pids[name] != self._pids[name]:
                self.faults.append(f"{name} ended during the soak: see {self._running.log(name)}")
            self.faults += [f"{name}: {finding}" for finding in findings(series)]
        if unanswered := self._alive.outcomes()["unanswered"]:
            self.faults.append(f"{unanswered} reviews had no answer")
        if not all(self._alive.outcomes()[name] for name in ("allowed", "denied", "failed")):
            self.faults.append("there was not each of allowed, denied and failed: the soak has shown nothing")
        # Traffic goes on: whatever was 0 once has not leaked.
        left = await self._in_flight()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(QUIET_SECONDS):
                while left:
                    await asyncio.sleep(0.1)
                    now = await self._in_flight()
                    left = {name: now[name] for name in left if name in now}
        self.faults += [f"{name} was never 0 again, but {value:g}" for name, value in left.items()]

    async def _in_flight(self):
        """What is in flight, or pending in Redis; only what is not 0."""
        found = {}
        for name in WATCHED[:2]:
            async with self._session.get(f"http://{self._running.machine.addresses[name]}:9443/metrics") as response:
                for line in (await response.text()).splitlines():
                    metric, _, value = line.rpartition(" ")
                    if metric.partition("{")[0].removeprefix("admission_gateway_") in IN_FLIGHT and float(value):
                        found[f"{name}: {metric}"] = float(value)
        client = redis.asyncio.Redis(host=self._running.machine.addresses["queue"])
        async with client:
            async for key in client.scan_iter(_type="stream"):
                for group in await client.xinfo_groups(key):
                    if group["pending"]:
                        found[f"queue: pending of {key.decode()}"] = group["pending"]
        return found


@contextlib.asynccontextmanager
async def _beside(*work):
    tasks = [asyncio.create_task(each) for each in work]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def services():
    """Those of docker-compose.yml, with more traffic."""
    return [
        replace(
            service,
            command=tuple(
                f"--rate={REVIEWS_A_SECOND}" if word.startswith("--rate=") else word for word in service.command
            ),
        )
        for service in read()
    ]


async def main(minutes):
    """The exit code."""
    try:
        async with Processes(services(), FOLDER) as running, aiohttp.ClientSession() as session:
            soak = Soak(running, session)
            await soak.run(minutes)
    except NotAliveError as error:
        click.echo(error, err=True)
        return 1
    for fault in soak.faults:
        click.echo(f"FAULT  {fault}", err=True)
    click.echo(
        f"{minutes:g} minutes: "
        + ("not flat" if soak.faults else "memory, descriptors and threads are flat; nothing is left in flight")
    )
    return bool(soak.faults)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    given = parser.parse_args()
    if given.minutes * 60 / SAMPLE_SECONDS < 2 * PARTS:
        parser.error(f"--minutes: at least {2 * PARTS * SAMPLE_SECONDS / 60:g}")
    sys.exit(asyncio.run(main(given.minutes)))
