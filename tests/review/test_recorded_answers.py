"""What the webhook client of k8s.io/apiserver 0.36.3 made of answers: taken or refused, and in which words."""

import json
from pathlib import Path

import pytest

from gateway.review.answers import AnswerError, read_answer

CASES = [*map(json.loads, (Path(__file__).parent / "cases" / "answers.jsonl").read_text().split("\n")[:-1])]
"""``review`` is the version that was asked in, ``body`` the answer; ``error`` what was said of it, else ``allowed``."""

SYNTAX = "failed to call webhook: couldn't get version/kind; json parse error: "
MISSING = "failed to call webhook: Object 'apiVersion' is missing"


def outcome(case):
    """What becomes of an answer here."""
    asked = {"uid": "U", "api_version": f"admission.k8s.io/{case['review']}", "mutating": case["mutating"]}
    try:
        return {"allowed": read_answer(case["body"].encode(), **asked).allowed}
    except AnswerError as error:
        return {"error": str(error)}


def other_words(case):
    """Why the words may be others, and how they begin then; None: they may not."""
    if not case["body"].startswith("{"):
        return "does not begin with {", SYNTAX
    if not is_json(case["body"]):
        return "is no JSON", SYNTAX
    if case.get("error", "").startswith(MISSING):
        return "has an apiVersion that ends in /", MISSING
    return None


def is_json(text):
    """Whether a text is JSON as RFC 8259 has it."""
    try:
        json.loads(text)
    except ValueError:
        return False
    return "NaN" not in text


def test_an_answer_is_taken_or_refused_as_by_kubernetes():
    """Whatever the letter case, the types, the versions and the repetitions in it; YAML aside, which is no JSON."""
    assert [case for case in CASES if "allowed" in case and outcome(case) != {"allowed": case["allowed"]}] == []
    assert [case for case in CASES if "error" in case and "error" not in outcome(case)] == []


def test_what_is_refused_is_refused_in_the_same_words():
    """But for what docs/webhooks.md lists, and each of these is there."""
    differing = [case for case in CASES if "error" in case and outcome(case)["error"] != case["error"]]
    assert [case for case in differing if other_words(case) is None] == []
    assert {other_words(case)[0] for case in differing} == {
        "is no JSON",
        "does not begin with {",
        "has an apiVersion that ends in /",
    }
    assert all(outcome(case)["error"].startswith(other_words(case)[1]) for case in differing)


@pytest.mark.parametrize("name", ["APIVERSION", "apiversion", "apiVer\u017fion"])
def test_a_version_in_another_case_is_a_version(name):
    """An answer in v1 is no answer to a question in v1beta1, however its apiVersion is spelt."""
    body = {"kind": "AdmissionReview", name: "admission.k8s.io/v1", "response": {"uid": "U", "allowed": True}}
    case = {"review": "v1beta1", "mutating": False, "body": json.dumps(body)}
    words = "converting (v1.AdmissionReview) to (v1beta1.AdmissionReview): unknown conversion"
    assert outcome(case) == {"error": f"failed to call webhook: {words}"}
