"""An answer becomes a decision: what targets do with whatever answer they have got out of an input.

* The engine decides, and the review is encoded: JSON in UTF-8 with the request's uid.
* Only an allow allows. A denial has a code between 400 and 599.
* The patch applies to the object that was sent, by another library, and gives the object that the engine predicts.
"""

import base64
import copy
import json
from typing import Any

import jsonpatch

from gateway.documents.documents import hashed
from gateway.engine.policy_call import PolicyCall
from gateway.engine.verdicts import Allow, Answer, Deny, Failure
from gateway.policies.model import Phase
from gateway.review.response import encode
from tests.patching.values import strictly_equal
from tests.world import decide, policy, request

OBJECT = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "labels": {"a": "1"}},
    "spec": {"containers": [{"name": "c", "image": "i"}, {"name": "d"}], "n": 1, "f": 0.5, "no": None},
}
FAR_AWAY = 1e12
POLICIES = {phase: policy("judge", phase=phase) for phase in Phase}


def phase_of(data: bytes) -> tuple[Phase, bytes]:
    """The phase that the first byte of an input says, and the rest."""
    return (Phase.MUTATING if data[:1] > b"\x7f" else Phase.VALIDATING), data[1:]


def call(phase: Phase, number: int = 1) -> PolicyCall:
    """A call that waits for an answer."""
    return PolicyCall(
        id=number,
        policy=POLICIES[phase],
        document=hashed(b'{"object":{}}'),
        deadline=FAR_AWAY,
        uid="u1",
        cancellable=True,
        version="1",
    )


def check(answer: Answer, phase: Phase) -> None:
    """See above."""
    assert isinstance(answer, Allow | Deny | Failure)
    sent = request(OBJECT)
    decision, _ = decide([POLICIES[phase]], {"judge": answer}, on=sent)
    content = encode(decision.response, uid=sent.uid, api_version=sent.api_version, mutating=phase is Phase.MUTATING)
    response = json.loads(content.decode())["response"]
    assert response["uid"] == sent.uid
    assert not response["allowed"] or isinstance(answer, Allow), "allowed without an allow"
    if not response["allowed"]:
        assert 400 <= response["status"]["code"] <= 599, response["status"]
    if "patch" in response:
        _check_patch(json.loads(base64.b64decode(response["patch"])), decision)


def _check_patch(patch: Any, decision: Any) -> None:
    before = json.loads(json.dumps(OBJECT))
    after = jsonpatch.apply_patch(copy.deepcopy(before), patch)
    predicted = decision.object
    assert strictly_equal(after, predicted), f"the patch gives {after!r}, predicted is {predicted!r}"
