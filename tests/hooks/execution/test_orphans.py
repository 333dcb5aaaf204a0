"""Orphans: whoever lost its parent below this process is found here, and nobody else is touched."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.hooks.execution import orphans
from gateway.hooks.execution.orphans import OrphanReaper, children, new_run_id
from gateway.hooks.execution.process import run
from tests.hooks.scripts import PATIENCE, gone, pid_in, until

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells whose children these are"),
]


def test_two_marks_differ():
    """No run is taken for another one."""
    assert len({new_run_id() for _ in range(100)}) == 100


async def test_other_children_are_left_alone(tmp_path):
    """A process that somebody else has started, in a session of its own, survives the end of a run."""
    other = subprocess.Popen(["sleep", "1e6"], start_new_session=True)  # noqa: ASYNC220 - as somebody else would
    try:
        await run(["/bin/true"], environment={}, directory=tmp_path, seconds=PATIENCE, output_bytes=1)
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


async def test_the_status_of_others_is_not_taken(tmp_path):
    """A child that has just ended is its owner's to wait for."""
    other = subprocess.Popen(["sh", "-c", "exit 7"])  # noqa: ASYNC220 - as somebody else would
    await until(lambda: any(child.pid == other.pid and child.state == "Z" for child in children()))
    await run(["/bin/true"], environment={}, directory=tmp_path, seconds=PATIENCE, output_bytes=1)
    assert other.wait() == 7


async def test_what_nobody_waits_for_is_reaped_in_the_end(tmp_path, monkeypatch):
    """An orphan that had ended before anybody saw its mark does not stay for ever."""
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
        await run(["/bin/true"], environment={}, directory=tmp_path, seconds=PATIENCE, output_bytes=1)
    await gone(pid)


async def test_who_loses_its_parent_in_the_middle_of_a_look_is_found(tmp_path, monkeypatch):
    """The children are listed, then one of them ends, then it is looked at: what it leaves is found all the same."""
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
    fields = {"environment": environment, "directory": tmp_path, "seconds": PATIENCE, "output_bytes": 1}
    await run(["/bin/bash", "-c", script], **fields)
    await gone(await pid_in(tmp_path / "child"))


async def test_two_runs_at_once_do_not_take_each_others_children(tmp_path):
    """The end of one leaves alone what the other one has in the background."""
    script = (
        "setsid sh -c 'echo $$ > child; exec sleep 1e6' & until test -s go; do sleep 0.01; done; kill -0 $(cat child)"
    )
    environment = {"PATH": os.environ["PATH"]}
    fields = {"environment": environment, "directory": tmp_path, "seconds": PATIENCE, "output_bytes": 10_000}
    first = asyncio.create_task(run(["/bin/bash", "-c", script], **fields))
    pid = await pid_in(tmp_path / "child")
    await run(["/bin/true"], **fields)
    (tmp_path / "go").write_text("on")
    assert (await first).code == 0
    await gone(pid)
