"""A hundred reviews get the same decisions from the sample policies of all languages.

Through a real gateway. Python's answers are the reference; each other language's are the same, byte for byte.
"""

import base64
import json

import pytest

from tests.integration.running import policy
from tests.workers.commands import SAMPLES, command, languages
from tests.workers.hundred import COUNT, MUTATING, VALIDATING, assert_same, reviews
from tests.workers.running import EVERYTHING, Served, called


def _policies(policies):
    return [
        policy(name, worker="judge", policy=of, rules=EVERYTHING, settings=settings, timeoutSeconds=10)
        for name, (of, settings) in policies.items()
    ]


def _behind(argv):
    return Served(argv=argv, mutating=_policies(MUTATING), validating=_policies(VALIDATING))


def _decisions(language, serving, trust, folder):
    """The gateway's answers to all reviews, in bytes."""
    answers = called(serving, trust, folder, _behind(command(SAMPLES, language)), reviews())
    assert {answered.status for answered in answers} == {200}
    return [answered.body for answered in answers]


@pytest.fixture(scope="module")
def reference(serving, trust, tmp_path_factory):
    """Python's decisions."""
    return _decisions("python", serving, trust, tmp_path_factory.mktemp("reference"))


@pytest.mark.parametrize("language", languages(SAMPLES))
def test_a_language_decides_the_same(language, reference, serving, trust, tmp_path):
    """Each language's answers equal Python's byte for byte, and so do Python's in a second run."""
    decisions = _decisions(language, serving, trust, tmp_path)
    assert_same(reference, decisions, language)


def test_the_reviews_make_every_policy_act(reference):
    """There are a hundred reviews; no policy fails, and each denies, changes or warns in some of them."""
    responses = [json.loads(body)["response"] for body in reference]
    assert len(responses) == COUNT
    assert not [each for each in responses if "WORKER_FAILURE" in json.dumps(each)]
    denials = [each["status"] for each in responses if not each["allowed"]]
    changes = [json.loads(base64.b64decode(each["patch"])) for each in responses if "patch" in each]
    warnings = [text for each in responses for text in each.get("warnings", ())]
    lines = [line for status in denials for line in status["message"].splitlines()]
    for name in VALIDATING:
        assert [line for line in lines if line.startswith(f"{name}.test.example.com: ")], name
    for name in MUTATING:
        annotation = f"{name}.test.example.com_changed"
        assert [each for each in responses if annotation in each.get("auditAnnotations", {})], name
    assert len(denials) >= 20
    assert len(changes) >= 20
    assert [status for status in denials if len(status["details"]["causes"]) > 2]
    assert [text for text in warnings if "exceeds its limit" in text]
    assert [text for text in warnings if 'sidecar "proxy" is not added' in text]
