"""Wherever decisions are logged, and whatever becomes of that place, reviews are answered and losses are counted."""

import base64
import errno
import json
import os
import re
import shutil
from pathlib import Path

import pytest

from gateway.serving.decision_outputs import DecisionOutputs, OutputError
from gateway.serving.settings import Settings
from gateway.telemetry.log_level import LogLevel
from gateway.telemetry.metrics import Metrics
from tests.integration.client import post
from tests.integration.running import configuration, policy, source, until
from tests.integration.test_reload import VALIDATING
from tests.integration.workers import always, deny, scripted

REVIEWS = 20


def known(target):
    return configuration(source(workers={"scripted": target}, validating=[policy("judge")]))


async def denied(served, count=REVIEWS):
    """Send reviews that are denied; the answers come whatever becomes of the log."""
    client = await served.client()
    for _ in range(count):
        assert not (await client.send(post(VALIDATING, "/validate?timeout=30s"))).response["allowed"]


async def test_each_decision_is_a_line(gateway, tmp_path):
    """Of a file, as soon as it is made."""
    path = tmp_path / "log"
    async with (
        scripted("judge", review=always(deny())) as target,
        gateway(known(target), decision_log=str(path), decision_log_level=LogLevel.FAILED) as quiet,
    ):
        await denied(quiet)
        assert quiet.metric("decisions_dropped_total", output="log", reason="full") == 0
    assert path.read_text() == ""
    async with (
        scripted("judge", review=always(deny())) as target,
        gateway(known(target), decision_log=str(path)) as served,
    ):
        await denied(served)
        await until(lambda: path.exists() and path.read_text().count("\n") == REVIEWS)
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    assert {(each["kind"], each["outcome"], each["phase"]) for each in entries} == {
        ("Decision", "denied", "validating")
    }


@pytest.mark.parametrize("place", ["removed/log", "/dev/full", "replaced"])
async def test_what_cannot_be_written_delays_nothing(gateway, logs, tmp_path, place):
    """A directory that was removed, a full disk, a directory in the file's place: all is counted, and one message says
    why.
    """
    (tmp_path / "removed").mkdir()
    async with (
        scripted("judge", review=always(deny())) as target,
        gateway(known(target), decision_log=str(tmp_path / place)) as served,
    ):
        shutil.rmtree(tmp_path / "removed")
        (tmp_path / "replaced").unlink(missing_ok=True)
        (tmp_path / "replaced").mkdir()
        await denied(served)
        await until(lambda: served.metric("decisions_dropped_total", output="log", reason="write_error") == REVIEWS)
    told = [entry for entry in logs() if entry["message"].startswith("decisions cannot be written")]
    assert [each["to"] for each in told] == [str(tmp_path / place)]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"decision_log": "missing/log"}, "--decision-log 'missing/log': No such file or directory; set a file"),
        ({"decision_log": "."}, "--decision-log '.': Is a directory; set a file"),
        ({"decision_log": ""}, "--decision-log '': it is empty; set a file"),
        ({"recording_dir": Path("missing")}, "--recording-dir 'missing': No such file or directory; set a directory"),
        ({"recording_dir": Path("keys")}, "--recording-dir 'keys': Not a directory; set a directory"),
    ],
)
def test_a_place_that_cannot_be_used_refuses_the_start(tmp_path, monkeypatch, settings, message):
    """At the start its cause is in sight; later, losses are counted."""
    monkeypatch.chdir(tmp_path)
    Path("keys").write_bytes(base64.b64encode(bytes(32)))
    with pytest.raises(OutputError, match=re.escape(message)):
        DecisionOutputs(Settings(recording_key_file=Path("keys"), **settings), Metrics())
    assert list(tmp_path.iterdir()) == [tmp_path / "keys"]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_refuses_no_start(tmp_path, monkeypatch, code):
    """Else a full disk would end a gateway that is restarted."""

    def full(*arguments, **options):
        raise OSError(code, os.strerror(code))

    keys = tmp_path / "keys"
    keys.write_bytes(base64.b64encode(bytes(32)))
    settings = Settings(decision_log=str(tmp_path / "log"), recording_dir=tmp_path, recording_key_file=keys)
    with monkeypatch.context() as patched:
        patched.setattr(os, "open", full)
        patched.setattr("gateway.serving.recording_segments.TemporaryFile", full)
        assert len(DecisionOutputs(settings, Metrics()).observers) == 3
    assert list(tmp_path.iterdir()) == [keys]


async def test_a_pipe_that_is_never_read_delays_nothing(gateway, tmp_path, monkeypatch):
    """Neither reviews nor the end of the gateway."""
    monkeypatch.setattr("gateway.telemetry.background_writer.STOP_SECONDS", 0.01)
    path = tmp_path / "pipe"
    os.mkfifo(path)
    async with scripted("judge", review=always(deny())) as target:
        async with gateway(known(target), decision_log=str(path)) as served:
            await denied(served)
        assert served.metric("decisions_dropped_total", output="log", reason="shutdown") == REVIEWS
    # Lets the thread that still opens the pipe end.
    os.close(os.open(path, os.O_RDONLY))
