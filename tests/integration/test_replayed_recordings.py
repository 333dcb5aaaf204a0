"""What serve has recorded has the same verdicts again: all recorded traffic of a real kube-apiserver, recorded by a
Gateway, read back, and decided by the simulator of ``review``.
"""

import base64
import json
import sys
from pathlib import Path

import pytest
import uvloop

from gateway.cli.decision_document import decision_document
from gateway.policies.model import Phase
from gateway.redis.sealing import SealKeys
from gateway.review.request import decode
from gateway.serving.dispatch_simulator import DispatchSimulator
from gateway.serving.recording_segments import read_segment, segments_in
from gateway.sources.loading import load_configuration
from gateway.telemetry.recordings import REVIEW_BYTES
from tests.integration.client import message
from tests.integration.running import policy, running, source
from tests.traffic import recordings

WITNESS = Path(__file__).parent / "witness.py"
EVERYTHING = [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}]
LABELS = ["/object/metadata/labels", "/oldObject/metadata/labels"]


def narrow():
    """Policies that receive little, change what they do not receive, and are matched by selectors and conditions."""
    every = {"worker": "samples", "rules": EVERYTHING}
    user = {"name": "user", "expression": "request.userInfo.username.startsWith('system:') || has(request.dryRun)"}
    return source(
        workers={
            "samples": {"target": "unix:samples.sock", "command": [sys.executable, "-m", "admission_worker.samples"]},
            "witness": {"target": "unix:witness.sock", "command": [sys.executable, str(WITNESS)]},
        },
        mutating=[
            # It changes annotations, and adds members, without seeing any.
            policy("stamp", worker="witness", rules=EVERYTHING, inputs=["/object/kind"]),
            policy("default-labels", **every, inputs=LABELS, settings={"labels": {"a": "b"}}),
            policy(
                "default-labels-2",
                **every,
                policy="default-labels",
                inputs=LABELS,
                settings={"labels": {"c": "d"}},
                matchConditions=[user],
            ),
        ],
        validating=[
            policy(
                "required-labels",
                **every,
                inputs=LABELS,
                settings={"labels": {"app": ""}},
                objectSelector={"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]},
            ),
            policy("no-privileged", **every, inputs=["/object/spec/containers"], settings={}, matchConditions=[user]),
        ],
    )


def wide():
    """Policies that receive everything."""
    every = {"worker": "witness", "rules": EVERYTHING}
    return source(
        workers={"witness": {"target": "unix:witness.sock", "command": [sys.executable, str(WITNESS)]}},
        mutating=[policy("repeat", **every), policy("stamp", **every, reinvocationPolicy="IfNeeded")],
        validating=[policy("gate", **every)],
    )


def decided(simulation):
    """A decision without what the policies were not concerned with: the rest of the object."""
    document = json.loads(decision_document("", simulation))
    del document["object"]
    return document


@pytest.mark.parametrize("policies", [narrow, wide])
def test_a_recorded_review_has_the_same_decision(policies, tmp_path, certificates, trust):
    """Each recording that is replayable: every policy's verdict, message and changes, the patch and the status."""
    (tmp_path / "policies.yaml").write_text(policies())
    keys = tmp_path / "keys"
    keys.write_text(base64.b64encode(bytes(32)).decode())
    settings = {"recording_dir": tmp_path, "recording_key_file": keys, "recording_sample_ratio": 1.0}

    async def compared():
        known = load_configuration([tmp_path / "policies.yaml"])
        async with running(known, certificates, trust, **settings) as gateway:
            client = await gateway.client()
            for each in recordings():
                assert (await client.send(message(each))).status == 200
        found = [
            json.loads(text) for path in segments_in(tmp_path) for text in read_segment(path, SealKeys(keys)).recordings
        ]
        originals = {json.loads(each.body)["request"]["uid"]: each for each in recordings()}
        assert len(found) == sum(len(each.body) < REVIEW_BYTES for each in recordings())
        async with running(known, certificates, trust) as gateway:
            simulator = DispatchSimulator(gateway.gateway._loaded)
            for each in found:
                if each["replayable"]:
                    phase = Phase(each["phase"])
                    again = await simulator.simulate(phase, decode(json.dumps(each["review"]).encode()))
                    first = await simulator.simulate(phase, decode(originals[each["uid"]].body))
                    yield each, decided(first), decided(again)

    async def collected():
        return [each async for each in compared()]

    results = uvloop.run(collected())
    assert len(results) > 100
    for each, first, again in results:
        assert again == first, each["uid"]
        verdicts = {call["name"]: (call["verdict"], call["message"]) for call in each["policies"]}
        replayed = {
            call["name"]: (call["verdict"], call["message"]) for entry in again["entries"] for call in entry["policies"]
        }
        assert verdicts.items() <= replayed.items()
