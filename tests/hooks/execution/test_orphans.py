"""Orphaned descendants of this process are killed and reaped; other processes are not touched."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.hooks.execution import orphans
from gateway.hooks.execution.orphans import OrphanReaper, children, new_run_id
from gateway.hooks.execution.process import run
from tests.hooks.scripts import WAIT_SECONDS, gone, pid_in, until

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux reports the parent of an orphan"),
]


def test_run_ids_differ():
    """No run is taken for another one."""
    assert len({new_run_id() for _ in range(100)}) == 100


async def test_other_children_are_not_killed(tmp_path):
    """A process that other code has started, in a session of its own, survives the end of a run."""
    other = subprocess.Popen(["sleep", "1e6"], start_new_session=True)  # noqa: ASYNC220 - as another component would
    try:
        await run(["/bin/true"], environment={}, directory=tmp_path, seconds=WAIT_SECONDS, output_bytes=1)
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


async def test_the_exit_status_of_other_children_is_not_taken(tmp_path):
    """The code that started a process can wait for it."""
    other = subprocess.Popen(["sh", "-c", "exit 7"])  # noqa: ASYNC220 - as another component would
    await until(lambda: any(child.pid == other.pid and child.state == "Z" for child in children()))
    await run(["/bin/true"], environment={}, directory=tmp_path, seconds=WAIT_SECONDS, output_bytes=1)
    assert other.wait() == 7


async def test_an_orphan_of_an_unknown_run_is_reaped_later(tmp_path, monkeypatch):
    """One that exited before its environment could be read."""
    monkeypatch.setattr(orphans, "_ZOMBIE_SECONDS", 0.0)
    # Its parent ends first, and only then it itself: an entry of this process, with no environment any more.
    script = "(setsid sh -c 'echo $$ > child; until test -s go; do sleep 0.01; done' &)"
    assert OrphanReaper.adopt_orphans()
    shell = await asyncio.create_subprocess_exec("/bin/bash", "-c", script, cwd=tmp_path)
    await shell.wait()
    pid = await pid_in(tmp_path / "child")
    (tmp_path / "go").write_text("on")
    await until(lambda: any(child.pid == pid and child.state == "Z" for child in children()))
    for _ in range(2):
        await run(["/bin/true"], environment={}, directory=tmp_path, seconds=WAIT_SECONDS, output_bytes=1)
    await gone(pid)


async def test_a_process_that_is_orphaned_during_a_look_is_found(tmp_path, monkeypatch):
    """A child exits between the list of children and the look at it; its own child is found by the next look."""
    script = "setsid sh -c 'sleep 1e6 & echo $! > child; wait' & until test -s child; do sleep 0.01; done"
    listed, kill, doomed = orphans.child_pids, os.kill, {}

    def listed_before_they_end():
        found = listed()
        for pid in doomed.keys() & set(found):
            kill(pid, doomed.pop(pid))
            while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
                pass
        return found

    monkeypatch.setattr(orphans, "child_pids", listed_before_they_end)
    monkeypatch.setattr(os, "kill", doomed.__setitem__)
    environment = {"PATH": os.environ["PATH"]}
    fields = {"environment": environment, "directory": tmp_path, "seconds": WAIT_SECONDS, "output_bytes": 1}
    await run(["/bin/bash", "-c", script], **fields)
    await gone(await pid_in(tmp_path / "child"))


async def test_concurrent_runs_do_not_kill_each_others_children(tmp_path):
    """The end of one run leaves the background processes of the other."""
    script = (
        "setsid sh -c 'echo $$ > child; exec sleep 1e6' & until test -s go; do sleep 0.01; done; kill -0 $(cat child)"
    )
    environment = {"PATH": os.environ["PATH"]}
    fields = {"environment": environment, "directory": tmp_path, "seconds": WAIT_SECONDS, "output_bytes": 10_000}
    first = asyncio.create_task(run(["/bin/bash", "-c", script], **fields))
    pid = await pid_in(tmp_path / "child")
    await run(["/bin/true"], **fields)
    (tmp_path / "go").write_text("on")
    assert (await first).code == 0
    await gone(pid)
