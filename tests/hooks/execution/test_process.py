"""One run of a program: its output, its limits, and that nothing of it is left, however it ends."""

import asyncio
import contextlib
import os
import signal
from pathlib import Path

import pytest

from gateway.hooks.execution.orphans import OrphanReaper
from gateway.hooks.execution.process import run
from gateway.hooks.execution.results import ExitCause, NotStartedError, Stream
from tests.hooks.scripts import LIMITS, WAIT_SECONDS, executable, gone, pid_in, until

pytestmark = pytest.mark.integration

FOREVER = 1e6


def running(tmp_path, script, *, seconds=WAIT_SECONDS, output_bytes=1_000_000, **fields):
    """The result of a script in bash."""
    return run(
        ["/bin/bash", "-c", script],
        environment={"PATH": os.environ["PATH"]},
        directory=tmp_path,
        seconds=seconds,
        output_bytes=output_bytes,
        **fields,
    )


async def test_a_program_is_run_to_its_end(tmp_path):
    """With its exit status and both outputs, in the given directory."""
    ended = await running(tmp_path, "pwd; echo wrong >&2; exit 3")
    assert (ended.cause, ended.code) == (ExitCause.EXITED, 3)
    assert ended.stdout.decode() == f"{tmp_path.resolve()}\n"
    assert (ended.stderr, ended.left_out) == (b"wrong\n", 0)


async def test_the_standard_input_is_empty(tmp_path):
    """A program does not wait for a terminal."""
    assert (await running(tmp_path, "cat; echo end")).stdout == b"end\n"


async def test_a_program_gets_the_given_environment_only(tmp_path, monkeypatch):
    """Nothing of this process' own."""
    monkeypatch.setenv("ADMISSION_GATEWAY_REDIS", "redis://:secret@redis")
    ended = await run(
        ["/usr/bin/env"], environment={"A": "b"}, directory=tmp_path, seconds=WAIT_SECONDS, output_bytes=10_000
    )
    names = {line.split("=")[0] for line in ended.stdout.decode().splitlines()}
    assert names == {"A", "ADMISSION_GATEWAY_RUN"}


async def test_output_is_passed_on_and_its_beginning_kept(tmp_path):
    """The callback gets all of it; bytes that are not kept are counted."""
    output = dict.fromkeys(Stream, b"")

    def take(stream, chunk):
        output[stream] += chunk

    ended = await running(tmp_path, "printf %020d 1; printf e >&2", kept_bytes=5, on_output=take)
    assert (ended.stdout, ended.stderr, ended.left_out) == (b"00000", b"e", 15)
    assert output == {Stream.STDOUT: b"0" * 19 + b"1", Stream.STDERR: b"e"}


async def late(tmp_path, script, begun):
    """The result of a script at its time limit. Before that it has created a file ``begun``."""
    for seconds in LIMITS:
        ended = await running(tmp_path, script, seconds=seconds)
        if (tmp_path / begun).exists():
            return ended
    raise AssertionError(f"{script} has not begun within {seconds} s")


async def test_the_time_limit_stops_the_group(tmp_path):
    """Including child processes."""
    ended = await late(tmp_path, f"sleep {FOREVER} & echo $! > new; mv new child; wait", "child")
    assert (ended.cause, ended.code) == (ExitCause.TIMED_OUT, -signal.SIGTERM)
    await gone(await pid_in(tmp_path / "child"))


async def test_sigterm_comes_before_sigkill(tmp_path):
    """A trap of a script runs."""
    script = f"trap 'echo tidied > done; exit 7' TERM; touch begun; sleep {FOREVER} & wait"
    ended = await late(tmp_path, script, "begun")
    assert (ended.cause, ended.code) == (ExitCause.TIMED_OUT, 7)
    assert (tmp_path / "done").read_text() == "tidied\n"


async def test_a_program_that_ignores_sigterm_is_killed(tmp_path, monkeypatch):
    """After the grace period."""
    monkeypatch.setattr("gateway.hooks.execution.process.GRACE_SECONDS", 0.1)
    ended = await late(tmp_path, "trap '' TERM; touch begun; while :; do sleep 1000; done", "begun")
    assert (ended.cause, ended.code) == (ExitCause.TIMED_OUT, -signal.SIGKILL)


async def test_background_processes_are_killed(tmp_path):
    """They do not outlive the program."""
    ended = await running(tmp_path, f"sleep {FOREVER} & echo $! > child; exit 0")
    assert ended.cause is ExitCause.EXITED
    await gone(await pid_in(tmp_path / "child"))


@pytest.mark.parametrize("missing", [("pidfd_open",), ("pidfd_open", "waitid")], ids=["pidfd", "waitid"])
async def test_background_processes_are_killed_without_pidfds(tmp_path, monkeypatch, missing):
    """Where there is no subreaper either: with the group, before or just after its number is free again."""
    for name in missing:
        monkeypatch.delattr(os, name, raising=False)
    monkeypatch.setattr(OrphanReaper, "_is_subreaper", False)
    ended = await running(tmp_path, f"sleep {FOREVER} & echo $! > child; exit 3")
    assert (ended.cause, ended.code) == (ExitCause.EXITED, 3)
    pid = await pid_in(tmp_path / "child")
    await until(lambda: is_dead(pid))
    # It may have fallen to us, if we have adopted orphans before.
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)  # noqa: ASYNC222 - it has ended


def is_dead(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


@pytest.mark.parametrize(
    "daemon",
    [
        "setsid sh -c 'echo $$ > child; exec sleep 1e6' &",
        "(setsid sh -c 'echo $$ > child; exec sleep 1e6' > /dev/null 2>&1 &)",
        "(setsid sh -c '(setsid sh -c \"echo \\$\\$ > child; exec sleep 1e6\" &)' &)",
    ],
    ids=["session", "orphan", "daemon"],
)
async def test_processes_that_leave_the_group_are_killed(tmp_path, daemon):
    """With a session of their own, a dead parent, an open output: they are killed and reaped."""
    ended = await running(tmp_path, f"{daemon}\nuntil test -s child; do sleep 0.01; done")
    assert (ended.cause, ended.code) == (ExitCause.EXITED, 0)
    await gone(await pid_in(tmp_path / "child"))


async def test_an_output_held_open_by_a_daemon_is_not_waited_for(tmp_path):
    """The exit of the program ends the run."""
    ended = await running(tmp_path, f"echo said; setsid sleep {FOREVER} & exit 0")
    assert ended.stdout == b"said\n"


@pytest.mark.parametrize("stream", ["", ">&2"], ids=["stdout", "stderr"])
async def test_endless_output_is_stopped(tmp_path, stream):
    """At the output limit."""
    ended = await running(tmp_path, f"yes {stream}", output_bytes=100_000, kept_bytes=10)
    assert ended.cause is ExitCause.OUTPUT_LIMIT
    assert len(ended.stdout + ended.stderr) == 10
    assert ended.left_out >= 99_990


async def test_the_output_limit_is_that_of_both_outputs_together(tmp_path):
    """Exactly as much as is allowed may be written."""
    script = "head -c 600 /dev/zero; head -c 400 /dev/zero >&2"
    assert (await running(tmp_path, script, output_bytes=1000)).cause is ExitCause.EXITED
    assert (await running(tmp_path, script, output_bytes=999)).cause is ExitCause.OUTPUT_LIMIT


async def test_cancelling_leaves_nothing(tmp_path):
    """The group is gone when the cancellation returns."""
    task = asyncio.create_task(running(tmp_path, f"echo $$ > own; sleep {FOREVER} & echo $! > child; wait"))
    pids = [await pid_in(tmp_path / name) for name in ("own", "child")]
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    for pid in pids:
        await gone(pid)


async def test_cancelling_twice_kills(tmp_path):
    """A second cancellation ends the grace period."""
    task = asyncio.create_task(running(tmp_path, "trap '' TERM; echo $$ > own; while :; do sleep 1000; done"))
    pid = await pid_in(tmp_path / "own")
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await gone(pid)


async def test_a_signal_from_elsewhere_is_the_exit_status(tmp_path):
    """As a negative number."""
    task = asyncio.create_task(running(tmp_path, f"echo $$ > own; exec sleep {FOREVER}"))
    os.kill(await pid_in(tmp_path / "own"), signal.SIGKILL)
    ended = await task
    assert (ended.cause, ended.code) == (ExitCause.EXITED, -signal.SIGKILL)


def descriptors():
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_no_descriptor_is_left(tmp_path):
    """However often programs are run, and however they end."""
    before = descriptors()
    for script in ("exit 0", "yes", "setsid sleep 1e6 &"):
        await running(tmp_path, script, output_bytes=1000)
    await until(lambda: descriptors() <= before)


@pytest.mark.parametrize(
    ("text", "mode", "why"),
    [
        (None, 0, "there is no such file"),
        ("#!/bin/sh\n", 0o644, r"may not be executed; chmod \+x"),
        ("#!/nowhere/perl -w\n", 0o755, r"interpreter in its first line \('#!/nowhere/perl -w'\)"),
        ("#!/bin/sh\r\n", 0o755, r"first line \('#!/bin/sh\\r'\) ends in CR.* sed -i 's/\\r\$//' "),
        ("#!/nowhere/perl -w\r\n", 0o755, r"interpreter in its first line \('#!/nowhere/perl -w'\)"),
        ("echo\n", 0o755, "exec format error"),
    ],
    ids=["missing", "mode", "interpreter", "crlf", "interpreter-crlf", "format"],
)
async def test_the_error_of_a_start_says_why(tmp_path, text, mode, why):
    """And what to do."""
    path = tmp_path / "hook"
    if text is not None:
        executable(path, text).chmod(mode)
    with pytest.raises(NotStartedError, match=why):
        await run([str(path)], environment={}, directory=tmp_path, seconds=WAIT_SECONDS, output_bytes=1)


async def test_a_missing_directory_is_not_a_missing_program(tmp_path):
    """The message names the directory."""
    with pytest.raises(NotStartedError, match=r"its directory .* does not exist"):
        await run(["/bin/true"], environment={}, directory=tmp_path / "gone", seconds=WAIT_SECONDS, output_bytes=1)
