"""docker-compose.yml's services as processes: alive, and still judging when some of them are killed."""

import os
import re
import signal
import subprocess
import sys

import aiohttp
import pytest

from deploy.demo.alive import Alive
from deploy.demo.processes import Processes
from deploy.demo.services import ROOT, read
from tests.integration.running import until

REVIEWS = 100
"""How many are answered after a kill: five seconds of traffic."""


def test_the_command_shows_that_it_is_alive():
    """It says what it has seen and what to open, ends by itself, and leaves no process behind."""
    done = subprocess.run(
        [sys.executable, "-m", "deploy.demo", "--once"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"targets of Prometheus: +(\d+) of \1 up", done.stdout)
    assert "jaeger and grafana" in done.stdout
    assert done.stderr == ""
    network = re.search(r"http://(127\.0\.\d+\.)", done.stdout)[1]
    left = subprocess.run(["pgrep", "-af", network], capture_output=True, text=True, check=False)
    assert left.stdout == ""


@pytest.fixture
async def running(tmp_path):
    async with Processes(read(), tmp_path / "demo") as running:
        yield running


async def test_traffic_goes_on(running):
    """A gateway, a worker and each Redis are killed, one after another: reviews are judged, and it starts again."""
    async with aiohttp.ClientSession() as session:
        alive = Alive(running, session)
        await alive.wait()
        for name in ("gateway-1", "worker-java", "worker-python", "redis", "queue", "bridge-rust"):
            pid, before = running.pids[name], judged(alive)
            os.kill(pid, signal.SIGKILL)
            await until(lambda before=before: judged(alive) >= before + REVIEWS)
            await until(lambda name=name, pid=pid: running.pids[name] != pid)
        await alive.wait()


def judged(alive):
    """How many reviews were allowed or denied."""
    seen = alive.outcomes()
    return seen["allowed"] + seen["denied"]
