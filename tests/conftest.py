"""What all tests share: how many cases a property tries, and which tests `make test` leaves to `make integration`."""

import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.links.report import summarize

settings.register_profile("default", max_examples=100, deadline=None)
# All properties together take about four minutes on two cores, and may take eight. (workers/python/tests has the same.)
settings.register_profile(
    "long", max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# Behind nohup, or as a shell's background job, SIGHUP or SIGINT is ignored, and so it would be in the processes that
# tests start and stop with them. A handler is not inherited.
for _number in (signal.SIGHUP, signal.SIGINT):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, lambda *_: None)


@pytest.fixture
def redis(redis_server):
    """The module's server, empty and running, as every test finds it; who uses it says in ``redis_server`` which."""
    if redis_server.process is None:
        redis_server.start()
    redis_server.resume()
    with redis_server.client as client:
        client.config_set("maxmemory", 0)
        client.flushall()
    return redis_server


# ------------------------------------------------------------------------------------------- integration tests

INTEGRATION = Path(__file__).parent / "integration"
ELSEWHERE = {name: Path(__file__).parent / name for name in ("browser", "demo", "deploy", "e2e")}
"""Folders whose tests have a target of their own, by its mark."""

OF_PROCESSES = frozenset({"demo", "demo_started", "redis_server", "run_process", "serve", "serving"})
"""Fixtures that start processes: a test that asks for one is an integration test."""

LEFT_TO_OTHERS = ("browser", "integration", "demo", "e2e", "deploy", "workers", "faults", "long")
"""Marks of tests that `make test` leaves to other targets."""

_started: list[str] = []
"""What the test that runs has started."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark the tests of the whole gateway, and those whose fixtures start processes."""
    for item in items:
        elsewhere = [mark for mark, folder in ELSEWHERE.items() if item.path.is_relative_to(folder)]
        if elsewhere:
            item.add_marker(elsewhere[0])
        elif item.path.is_relative_to(INTEGRATION) or OF_PROCESSES.intersection(item.fixturenames):
            item.add_marker("integration")


def pytest_terminal_summary(terminalreporter):
    """The table of the fault matrix, if it ran."""
    summarize(terminalreporter)


def _note_processes(event, args):
    if event == "subprocess.Popen":
        _started.append(str(args[0]))


sys.addaudithook(_note_processes)
# uvloop starts processes by itself.
os.register_at_fork(before=lambda: _started.append("a process"))


@pytest.fixture(autouse=True)
def starts_no_process(request):
    """A test of `make test` starts no process: that costs more than all else it does, and depends on the machine."""
    _started.clear()
    yield
    if _started and not any(request.node.get_closest_marker(name) for name in LEFT_TO_OTHERS):
        pytest.fail(f"the test starts {_started[0]}: mark it with pytest.mark.integration", pytrace=False)
