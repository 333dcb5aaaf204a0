"""``check --with-workers`` through a queue: a real redis-server, and a bridge in front of the Python SDK's samples."""

import base64
import json
import os
import subprocess
import sys

import pytest
import yaml

from tests.caching import servers
from tests.integration.bridging import STREAM, Bridging, Contents
from tests.integration.process import WAIT_SECONDS

GROUP = "admission-gateway.dev/v1alpha1"


@pytest.fixture(scope="module")
def redis_server(tmp_path_factory):
    """The Redis of the queue."""
    with servers.server(tmp_path_factory.mktemp("redis")) as made:
        yield made


@pytest.fixture
def key_file(tmp_path):
    """The queue's keys."""
    return write_keys(tmp_path / "queue-keys")


def write_keys(file):
    """A file with a new key."""
    file.write_text(base64.b64encode(os.urandom(32)).decode() + "\n")
    return file


@pytest.fixture
def bridge(redis, key_file, tmp_path):
    """A bridge that takes work for the sample worker."""
    target = f"unix:{tmp_path / 's.sock'}"
    command = [sys.executable, "-m", "admission_worker.samples", "--listen", target]
    worker = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    made = Bridging("--queue", STREAM, "--key-file", key_file, "--redis", redis.url, "--worker", target)
    try:
        yield made.ready()
    finally:
        made.stop()
        worker.kill()
        worker.wait()


@pytest.fixture
def checked(run_process, tmp_path, key_file):
    """Check these policies of the queue's worker: exit code, the report, and the standard error."""

    def check(*policies, redis, keys=key_file, wait=WAIT_SECONDS):
        documents = [
            {"kind": "Worker", "metadata": {"name": "queued"}}
            | {"spec": {"queue": {"stream": STREAM, "keyFile": str(keys)}}},
            {"kind": "ValidatingPolicyConfiguration", "metadata": {"name": "a"}, "policies": list(policies)},
        ]
        path = tmp_path / "policies.yaml"
        path.write_text(yaml.safe_dump_all([{"apiVersion": GROUP} | each for each in documents], sort_keys=False))
        flags = () if redis is None else ("--queue-redis", redis.url)
        done = run_process("check", "--with-workers", "--worker-startup-timeout", wait, *flags, path, "-o", "json")
        return done.code, json.loads(done.out), done.err

    return check


def policy(name, **fields):
    """A policy of the queue's worker that is never called."""
    fields = {"worker": "queued", "rules": [], "sideEffects": "None"} | fields
    return {"name": f"{name}.samples.example.com"} | fields


def test_what_a_worker_behind_a_queue_rejects_is_reported_at_its_place(checked, bridge, redis):
    """A misspelt name and wrong settings, as of a worker that is called; and nothing is left in the queue."""
    code, report, printed = checked(
        policy("a", policy="required-lables"),
        policy("b", policy="required-labels", settings={"labels": {"team": "a"}, "extra": 1}),
        policy("c", policy="required-labels", settings={"labels": {"team": "a"}}),
        redis=redis,
    )
    assert (code, printed) == (1, f"waiting up to {WAIT_SECONDS:g} s for workers: queued\n")
    assert [error["path"] for error in report["errors"]] == ["policies[0].policy", "policies[1].settings.extra"]
    assert report["errors"][0]["message"] == "worker 'queued' holds no policy 'required-lables'"
    assert report["errors"][0]["hint"].startswith('did you mean "required-labels"?')
    (queued,) = report["workers"]
    assert (queued["reached"], queued["why"]) == (True, "")
    assert queued["unused"] == [name for name in queued["policies"] if name != "required-labels"]
    contents = Contents(redis)
    servers.wait_for(contents.is_done)
    contents.close()


def test_a_queue_without_a_bridge_is_reported(checked, redis):
    """Redis is there, and no worker: exit 2, and the queue is named."""
    code, report, _ = checked(policy("a"), redis=redis, wait=0.5)
    (queued,) = report["workers"]
    assert (code, report["valid"], queued["reached"]) == (2, True, False)
    assert STREAM in queued["why"]


def test_other_keys_are_reported(checked, bridge, redis, tmp_path):
    """A bridge whose messages cannot be opened is there, and the report names the file to compare."""
    code, report, _ = checked(policy("a"), redis=redis, keys=write_keys(tmp_path / "other-keys"), wait=2)
    (queued,) = report["workers"]
    assert (code, report["valid"], queued["reached"]) == (2, True, False)
    assert "another key file" in queued["why"]


def test_a_missing_redis_is_reported(checked):
    """Exit 2, and the flag is named."""
    code, report, _ = checked(policy("a"), redis=None, wait=0.5)
    (queued,) = report["workers"]
    assert (code, queued["reached"]) == (2, False)
    assert "--queue-redis" in queued["why"]
