"""The sample worker as a whole: its description and its command."""

import asyncio
import re
import sys

import grpc
import msgspec
import pytest

from admission_worker.samples import worker
from admission_worker.testing import review
from workers.python.tests.client import MUTATING, PATIENCE, VALIDATING, Client, connected, policy_call
from workers.python.tests.reviews import all_recorded, changed, recorded
from workers.python.tests.sample_decisions import RECORDING, decided

SETTINGS = {
    "required-labels": {"labels": {"app": ""}},
    "no-privileged": {},
    "default-labels": {"labels": {"team": "a"}},
    "default-resources": {"requests": {"cpu": "100m"}, "limits": {"memory": "1Gi"}},
    "image-registry": {"from": "docker.io", "to": "registry.example.com/mirror"},
    "sidecar": {"container": {"name": "proxy", "image": "registry.example.com/proxy"}},
}


async def test_the_samples_describe_themselves_completely():
    """Every sample has a description, a schema, inputs, and if it mutates, writes; none claims everything."""
    async with connected(worker) as client:
        described = await client.describe()
    assert {policy.name for policy in described.policies} == set(SETTINGS)
    for policy in described.policies:
        assert policy.description.endswith("."), policy.name
        assert msgspec.json.decode(policy.settings_schema)
        assert len(policy.inputs.pointers.pointers) > 0
        assert (len(policy.writes.pointers.pointers) > 0) == (list(policy.phases) == [MUTATING])
        assert all(pointer.startswith(("/object/", "/oldObject/")) for pointer in policy.inputs.pointers.pointers)


async def test_the_samples_accept_their_settings():
    """The settings of these tests, and none that are empty where something is required."""
    async with connected(worker) as client:
        for name, settings in SETTINGS.items():
            assert (await client.validate(name, settings)).errors == []
        assert (await client.validate("required-labels", {})).errors[0].pointer == "/labels"


async def test_every_sample_judges_every_recorded_request():
    """Real traffic of every kind: a verdict each time, and no failure."""
    async with connected(worker) as client:
        for phase, number in (("mutating", MUTATING), ("validating", VALIDATING)):
            policies = [policy for policy in worker.policies.values() if policy.phase.value == number]
            for name, admission in all_recorded(phase).items():
                document = msgspec.json.encode({key: value for key, value in admission.items() if key != "uid"})
                for policy in policies:
                    settings = msgspec.json.encode(SETTINGS[policy.name])
                    outcome = await client.review(
                        policy_call(policy.name, phase=number, settings=settings, document=document)
                    )
                    assert outcome.WhichOneof("verdict") in {"allow", "deny"}, (name, policy.name, outcome)


def test_the_samples_decide_as_recorded():
    """The samples decide exactly what the conformance kit expects of all languages."""
    lines = RECORDING.read_bytes().splitlines()
    assert len(lines) > 700
    assert [line.decode() for line in lines if decided(line) != line] == []


@pytest.mark.parametrize("order", [sorted(SETTINGS), sorted(SETTINGS, reverse=True)])
def test_the_samples_agree_with_each_other(order):
    """In whatever order, Kubernetes' second round completes what one policy added for another; a third changes
    nothing."""
    admission = recorded("pod-create.0m")
    chain = [name for name in order if worker.policies[name].phase.value == MUTATING]
    for _ in range(3):
        after_round = admission["object"]
        for name in chain:
            admission = admission | {"object": changed(admission, review(worker, name, admission, SETTINGS[name]))}
    assert admission["object"] == after_round


async def test_the_samples_run_as_a_program(tmp_path):
    """``python -m admission_worker.samples`` serves them."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "admission_worker.samples",
        "--listen",
        f"unix:{tmp_path}/w.sock",
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        line = (await asyncio.wait_for(process.stderr.readline(), PATIENCE)).decode()
        assert re.search(r"worker samples \S+ listens on unix:", line)
        async with grpc.aio.insecure_channel(f"unix:{tmp_path}/w.sock") as channel:
            assert (await Client(channel).describe()).worker == "samples"
        process.terminate()
        assert await asyncio.wait_for(process.wait(), PATIENCE) == 0
    finally:
        if process.returncode is None:
            process.kill()
        process._transport.close()
