"""Wherever decisions are logged, and whatever becomes of that place, reviews are answered and losses are counted."""

import json
import os

import pytest

from gateway.telemetry.log_level import LogLevel
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
    assert not path.exists()
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


@pytest.mark.parametrize("place", ["missing/log", "/dev/full", "."])
async def test_what_cannot_be_written_delays_nothing(gateway, logs, tmp_path, place):
    """A missing directory, a full disk, a directory in the file's place: all is counted, and one message says why."""
    async with (
        scripted("judge", review=always(deny())) as target,
        gateway(known(target), decision_log=str(tmp_path / place)) as served,
    ):
        await denied(served)
        await until(lambda: served.metric("decisions_dropped_total", output="log", reason="write_error") == REVIEWS)
    told = [entry for entry in logs() if entry["message"].startswith("decisions cannot be written")]
    assert [each["to"] for each in told] == [str(tmp_path / place)]


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
