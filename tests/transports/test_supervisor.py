"""A worker's process under supervision: started again whenever it ends, and gone without a trace at the end."""

import asyncio
import contextlib
import os
import shlex
import signal
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gateway.policies.errors import Place
from gateway.policies.workers.targets import GrpcTarget, Worker
from gateway.transports import supervisor as supervising
from gateway.transports.limits import TransportLimits
from gateway.transports.output import LINE_BYTES
from gateway.transports.supervisor import Supervisor
from tests.integration.process import WAIT_SECONDS, runs
from tests.integration.running import until

pytestmark = pytest.mark.integration

TARGET = "unix:/run/worker.sock"


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Pauses too short to wait for."""
    monkeypatch.setattr(supervising, "RESTART_SECONDS", (0.001, 0.004))


@asynccontextmanager
async def supervised(*command, directory="", **limits):
    """A supervisor of this command, stopped at the end."""
    grpc = GrpcTarget(target=TARGET, command=command, directory=str(directory))
    worker = Worker(name="labels", grpc=grpc, place=Place(file="workers.yaml", line=3))
    supervisor = Supervisor(worker, TARGET, TransportLimits(**({"worker_stop_seconds": 5.0} | limits)))
    supervisor.start()
    try:
        yield supervisor
    finally:
        await supervisor.stop()


def shell(script):
    return ("sh", "-c", script)


def python(script):
    return (sys.executable, "-c", script)


def said(log):
    """The lines that the worker wrote."""
    return [entry["line"] for entry in log if entry["event"] == "worker output"]


def events(log, message):
    return [entry for entry in log if entry["event"] == message]


async def test_the_worker_gets_its_address(log, tmp_path):
    """It finds its address and that it is supervised in the environment, and starts where its document stands."""
    script = 'echo "$ADMISSION_WORKER_LISTEN $ADMISSION_WORKER_SUPERVISED"; pwd; cat'
    async with supervised(*shell(script), directory=tmp_path):
        await until(lambda: len(said(log)) == 2)
    assert said(log) == [f"{TARGET} 1", str(tmp_path)]


async def test_python_is_the_gateways_own(log):
    """``python`` in a command is the gateway's interpreter, so that what is installed with it runs."""
    async with supervised("python", "-c", "import sys; print(sys.executable); sys.stdin.read()"):
        await until(lambda: said(log))
    assert Path(said(log)[0]).parent == Path(sys.executable).parent


async def test_it_does_not_get_the_gateways_secrets(log, monkeypatch):
    """Of the gateway's environment a worker has what hooks have: what any program needs, and the way to the cluster."""
    monkeypatch.setenv("ADMISSION_GATEWAY_REDIS", "redis://:secret@redis")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    async with supervised(*python("import os; print(*os.environ)")):
        await until(lambda: said(log))
    given = {"ADMISSION_WORKER_LISTEN", "ADMISSION_WORKER_SUPERVISED", "KUBERNETES_SERVICE_HOST", "PYTHONUNBUFFERED"}
    found = {name for name in said(log)[0].split() if not name.startswith("KUBERNETES_SERVICE_P")}
    assert given <= found <= given | {"PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ"}


@pytest.mark.parametrize(
    ("command", "ended", "wrote"),
    [
        (shell("echo one; echo 'no module x' >&2; exit 3"), "ended with exit code 3", "one | no module x"),
        (shell("kill -9 $$"), "ended by SIGKILL", "nothing"),
        (
            ("/nonexistent/worker",),
            "cannot be started: No such file or directory",
            "nothing",
        ),
    ],
)
async def test_a_worker_that_does_not_run_says_why(log, command, ended, wrote):
    """Its command, how it ended, and its last lines: for operators; users hear that it does not run."""
    async with supervised(*command) as supervisor:
        problems = []
        supervisor.listen(lambda: problems.append(supervisor.problem))
        await until(lambda: problems)
    assert problems[0].message == "worker 'labels' does not run"
    assert problems[0].hint == f"its command {ended}: {shlex.join(command)}; it wrote last: {wrote}"


async def test_its_output_is_logged(log):
    """Standard output and error are logged line by line, whatever the bytes, the last line included."""
    script = r"printf 'one\n\ntwo \377\n' >&2; head -c 200000 /dev/zero | tr '\0' x; printf '\nlast'"
    async with supervised(*shell(script)):
        await until(lambda: "last" in said(log))
    lines = said(log)[: said(log).index("last")]
    assert lines[:2] == ["one", "two \ufffd"]
    assert sum(len(line) for line in lines if set(line) == {"x"}) >= 200_000
    assert max(map(len, lines)) <= 2 * LINE_BYTES


async def test_it_is_started_again(log):
    """Whenever the worker ends, however it ends, it is started again, and the log says with which code."""
    async with supervised(*shell("exit 3")):
        await until(lambda: len(events(log, "a worker has ended and is started again")) >= 3)
    assert {entry["code"] for entry in events(log, "a worker has ended and is started again")} == {3}


async def test_who_is_stopped_while_it_starts_is_gone(tmp_path):
    """However early it is stopped, no process is left: neither one that was not there yet, nor one just born."""
    born = tmp_path / "born"
    for turns in range(12):
        async with supervised(*shell(f"echo $$ >> {born}; exec sleep 1000")):
            for _ in range(turns):
                await asyncio.sleep(0)
    assert still_alive(born) == []


def still_alive(born):
    """The processes whose ids are in this file, if it is there, and that still run."""
    pids = born.read_text().split() if born.exists() else []
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]


async def test_the_pauses_grow_and_end(log, monkeypatch):
    """The first restart is immediate; then the pause doubles up to the longest, and stays there."""
    pauses = []

    async def pause(seconds):
        pauses.append(seconds)
        if len(pauses) == 5:
            await asyncio.get_running_loop().create_future()

    monkeypatch.setattr(supervising.asyncio, "sleep", pause)
    async with supervised(*shell("exit 1")):
        await asyncio.wait_for(_pauses(pauses, 5), WAIT_SECONDS)
    assert pauses == [0.0, 0.001, 0.002, 0.004, 0.004]


async def _pauses(pauses, number):
    while len(pauses) < number:
        await asyncio.get_running_loop().run_in_executor(None, lambda: None)


async def test_after_a_long_life_the_pause_is_short_again(monkeypatch):
    """A worker that has lived long was well: its restart is as quick as the first."""
    pauses = []

    async def pause(seconds):
        pauses.append(seconds)
        if len(pauses) == 3:
            await asyncio.get_running_loop().create_future()

    monkeypatch.setattr(supervising.asyncio, "sleep", pause)
    monkeypatch.setattr(supervising, "HEALTHY_SECONDS", 0.0)
    async with supervised(*shell("exit 1")):
        await asyncio.wait_for(_pauses(pauses, 3), WAIT_SECONDS)
    assert pauses == [0.0, 0.0, 0.0]


async def test_no_restart_waits_for_the_last_output(log, monkeypatch, tmp_path):
    """Another process may hold the output for ever; the worker is started again meanwhile."""
    monkeypatch.setattr(supervising, "LAST_OUTPUT_SECONDS", 1000.0)
    born, held = tmp_path / "born", tmp_path / "held"
    script = f"setsid sh -c 'echo $$ >> {held}; exec sleep 1000' & echo $$ >> {born}; exec cat"
    try:
        async with supervised(*shell(script)) as supervisor:
            await until(lambda: still_alive(held) and still_alive(born) and supervisor.pid is not None)
            os.kill(supervisor.pid, signal.SIGKILL)
            await until(lambda: born.read_text().count("\n") == held.read_text().count("\n") == 2)
            assert events(log, "a worker has ended and is started again") == []
            monkeypatch.setattr(supervising, "LAST_OUTPUT_SECONDS", 0.0)
            for ending in supervisor._endings:
                ending.cancel()
    finally:
        for pid in still_alive(held):
            os.kill(int(pid), signal.SIGKILL)


@pytest.mark.parametrize("command", [("no-such-program",), ("/etc/passwd",), ("/",)], ids=repr)
async def test_a_command_that_cannot_be_started_is_reported(log, command):
    """A missing or invalid program is reported with the Worker's place, and tried again."""
    async with supervised(*command):
        await until(
            lambda: len(events(log, "a worker cannot be started; check the command in its Worker document")) >= 2
        )
    entry = events(log, "a worker cannot be started; check the command in its Worker document")[0]
    assert (entry["worker"], entry["place"], entry["command"]) == ("labels", "workers.yaml:3", command)
    assert entry["error"]
    assert entry["log_level"] == "error"


async def test_a_missing_directory_is_reported(log, tmp_path):
    """A working directory that does not exist is a start that fails, and no crash."""
    async with supervised(*shell("true"), directory=tmp_path / "gone"):
        await until(lambda: events(log, "a worker cannot be started; check the command in its Worker document"))


async def test_stopping_is_gentle(log):
    """At the stop the worker gets SIGTERM and may finish; what it says then is logged; it is not started again."""
    script = "trap 'echo bye; exit 0' TERM; echo up; while :; do read line || exit 7; done"
    async with supervised(*shell(script)) as supervisor:
        await until(lambda: said(log) == ["up"])
        pid = supervisor.pid
    assert not runs(pid)
    assert supervisor.pid is None
    assert said(log) == ["up", "bye"]
    assert events(log, "a worker has ended and is started again") == []


async def test_who_does_not_stop_is_killed(log):
    """A worker that ignores SIGTERM is killed when its time is over."""
    async with supervised(*shell("trap '' TERM; echo up; while :; do sleep 1; done"), worker_stop_seconds=0.05) as it:
        await until(lambda: said(log) == ["up"])
        pid = it.pid
    assert not runs(pid)


async def test_what_it_has_started_goes_with_it(log):
    """Processes that the worker has started are killed with it, also those that ignore SIGTERM."""
    script = "sh -c \"trap '' TERM HUP; echo \\$\\$; while :; do sleep 1; done\" & wait"
    async with supervised(*shell(script)):
        await until(lambda: said(log))
        child = int(said(log)[0])
        assert runs(child)
    await until(lambda: not runs(child))


async def test_a_dead_workers_children_do_not_keep_it_from_coming_back(log):
    """A worker whose child keeps its output open is found dead all the same, its child is ended, and it comes back."""
    script = "sleep 1000 & echo $! $$; exec cat"
    async with supervised(*shell(script)) as supervisor:
        await until(lambda: said(log))
        child, first = map(int, said(log)[0].split())
        os.kill(first, signal.SIGKILL)
        await until(lambda: len(said(log)) == 2)
        assert supervisor.pid != first
        await until(lambda: not runs(child))  # killed; the kernel may take a moment


async def test_no_other_process_holds_its_standard_input(log):
    """Only the gateway can write to a worker's standard input: when that ends, the gateway has died."""
    async with supervised(*shell("echo up; cat")) as first, supervised(*shell("echo up; cat")) as second:
        await until(lambda: len(said(log)) == 2)
        standard_input = files(first.pid)["0"]
        assert [standard_input in writable(pid) for pid in ("self", first.pid, second.pid)] == [True, False, False]


def files(pid):
    """The open files of a process, by their numbers."""
    found = {}
    for each in Path(f"/proc/{pid}/fd").iterdir():
        # One may have been closed in the meantime.
        with contextlib.suppress(OSError):
            found[each.name] = str(each.readlink())
    return found


def writable(pid):
    """The files that a process has open for writing only."""
    found = set()
    for number, file in files(pid).items():
        with contextlib.suppress(OSError):
            flags = Path(f"/proc/{pid}/fdinfo/{number}").read_text().split()[3]
            if int(flags, 8) & os.O_ACCMODE == os.O_WRONLY:
                found.add(file)
    return found


async def test_stopping_while_it_starts_leaves_nothing(log):
    """A supervisor that is stopped at any moment of a start leaves no process behind."""
    before = set(_children())
    for turns in range(12):
        async with supervised(*shell("exec sleep 1000")):
            for _ in range(turns):
                await asyncio.get_running_loop().run_in_executor(None, lambda: None)
    await until(lambda: {pid for pid in _children() if runs(pid)} <= before)


def _children():
    for task in Path(f"/proc/{os.getpid()}/task").glob("*/children"):
        yield from map(int, task.read_text().split())


def test_no_garbage_is_collected_between_fork_and_exec():
    """A child must not end what belongs to its parent; the parent goes on collecting."""
    program = (
        "import gc, os, gateway.transports.supervisor\n"
        "child = os.fork()\n"
        "if not child: os._exit(gc.isenabled())\n"
        "assert os.waitpid(child, 0)[1] == 0 and gc.isenabled()"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=WAIT_SECONDS)
