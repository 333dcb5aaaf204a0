"""What the webhook client of k8s.io/apiserver 0.36.3 made of answers: taken or refused, and in which words."""

import json
import re
from pathlib import Path

import pytest

from gateway.review.answers import AnswerError, read_answer
from tests.docs.pages import pages

CASES = [*map(json.loads, (Path(__file__).parent / "cases" / "answers.jsonl").read_text().split("\n")[:-1])]
"""``review`` is the version of the request, ``body`` the answer; ``error`` the error about it, else ``allowed``."""

OTHER_KINDS = ("DeleteOptions", "GetOptions", "ListOptions", "Status", "WatchEvent")
"""Kinds that every scheme has."""

DEPTH = 256
"""Levels of arrays and objects that an answer may have."""

KEPT = 64
"""Characters that are there of what is too long to be repeated."""

SYNTAX = "failed to call webhook: couldn't get version/kind; json parse error: "
MISSING = "failed to call webhook: Object 'apiVersion' is missing"


def outcome(case):
    """What becomes of an answer here."""
    called = {"uid": "U", "api_version": f"admission.k8s.io/{case['review']}", "mutating": case["mutating"]}
    try:
        return {"allowed": read_answer(case["body"].encode(), **called).allowed}
    except AnswerError as error:
        return {"error": str(error)}


def shortened(case):
    """Whether what is said here is what was said there, with its middle left out."""
    said, there = outcome(case)["error"], case["error"]
    common = next((index for index, pair in enumerate(zip(said, there, strict=False)) if len(set(pair)) > 1), len(said))
    return common > KEPT and there.endswith(said[common:])


DIFFERENCES = {
    "does not begin with {": (lambda case: not case["body"].startswith("{"), SYNTAX),
    "is larger, or nests deeper, than the limits permit": (
        lambda case: depth(case["body"]) > DEPTH,
        f"{SYNTAX}exceeded max depth of {DEPTH}",
    ),
    "is no JSON": (lambda case: not is_json(case["body"]), SYNTAX),
    "has an apiVersion that ends in /": (lambda case: case["error"].startswith(MISSING), MISSING),
    "is of another kind than AdmissionReview, and has a member of the wrong type": (
        lambda case: json.loads(case["body"])["kind"] in OTHER_KINDS,
        "failed to call webhook: converting (v1.",
    ),
    "has a uid, kind or version of more than 200 characters, or a number of more than 64": (shortened, ""),
}
"""What docs/webhooks.md says of such an answer: which they are, and how the words begin here. The first that fits."""


def difference(case):
    """What docs/webhooks.md says of an answer whose words are others here; None: nothing."""
    for name, (fits, begin) in DIFFERENCES.items():
        if fits(case):
            return name if outcome(case)["error"].startswith(begin) else None
    return None


def depth(text):
    """How deep the longest run of arrays goes."""
    return max(map(len, re.findall(r"\[+", text)), default=0) + 1


def is_json(text):
    """Whether a text is JSON as RFC 8259 has it."""
    try:
        json.loads(text)
    except ValueError:
        return False
    return "NaN" not in text


def test_an_answer_is_taken_or_refused_as_by_kubernetes():
    """Whatever the letter case, the types, the versions and the repetitions in it; but for depth that is bounded here.

    YAML is no JSON.
    """
    taken = [case for case in CASES if "allowed" in case and depth(case["body"]) <= DEPTH]
    assert [case for case in taken if outcome(case) != {"allowed": case["allowed"]}] == []
    assert [case for case in CASES if "error" in case and "error" not in outcome(case)] == []


def test_what_is_refused_is_refused_in_the_same_words():
    """But for what docs/webhooks.md lists, and each of these is there."""
    refused = [case for case in CASES if "error" in outcome(case)]
    differing = [case for case in refused if outcome(case)["error"] != case.get("error")]
    assert [case for case in differing if difference(case) is None] == []
    assert {difference(case) for case in differing} == set(DIFFERENCES)
    table = pages()["docs/webhooks.md"].text.partition("| The answer |")[2].partition("\n\n")[0]
    listed = [row.split(" | ")[0].removeprefix("| ") for row in table.splitlines()[2:]]
    assert {re.sub(r"\]\([^)]*\)|[`\[]", "", text) for text in listed} == set(DIFFERENCES)


@pytest.mark.parametrize("name", ["APIVERSION", "apiversion", "apiVer\u017fion"])
def test_a_version_in_another_case_is_a_version(name):
    """An answer in v1 is no answer to a question in v1beta1, however its apiVersion is spelt."""
    body = {"kind": "AdmissionReview", name: "admission.k8s.io/v1", "response": {"uid": "U", "allowed": True}}
    case = {"review": "v1beta1", "mutating": False, "body": json.dumps(body)}
    words = "converting (v1.AdmissionReview) to (v1beta1.AdmissionReview): unknown conversion"
    assert outcome(case) == {"error": f"failed to call webhook: {words}"}
