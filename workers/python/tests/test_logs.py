"""The log: lines of a policy call have its policy and uid, and each failure is logged."""

import io
import json
import logging
from contextlib import contextmanager

import pytest

from admission_worker import Worker, allow, fail, logs
from workers.python.tests.client import batch, connected, policy_call

OWN = logging.getLogger("authors")


@pytest.fixture
def worker():
    made = Worker("test", version="1")

    @made.validating("plain")
    def plain(request):
        OWN.warning("looked at it")
        return allow()

    @made.validating("async")
    async def coroutine(request):
        OWN.warning("looked at it")

    @made.validating("blocking", blocking=True)
    def blocking(request):
        OWN.warning("looked at it")

    @made.validating("fails")
    def fails(request):
        return fail("the inventory\ncannot be reached")

    @made.validating("raises")
    async def raises(request):
        message = "secret"
        raise ValueError(message)

    return made


@contextmanager
def _logging(formatter):
    """The log as text."""
    root, written = logging.getLogger(), io.StringIO()
    handler, level = logging.StreamHandler(written), root.level
    handler.setFormatter(formatter)
    root.addHandler(handler)
    root.setLevel("INFO")
    try:
        yield written
    finally:
        root.removeHandler(handler)
        root.setLevel(level)


@pytest.fixture
def lines():
    """The log so far, as JSON."""
    with _logging(logs._Json()) as written:
        yield lambda: [json.loads(line) for line in written.getvalue().splitlines()]


@pytest.mark.parametrize("policy", ["plain", "async", "blocking"])
async def test_an_authors_line_has_policy_and_uid(worker, lines, policy):
    """Lines of each kind of function have policy and uid on both RPCs; other lines have neither."""
    async with connected(worker) as client:
        await client.review(policy_call(policy, uid="u-1"))
        calls = client.stream()
        await calls.send(batch(policy_call(policy, uid="u-2")))
        await calls.rest()
    OWN.warning("no policy")
    found = [(line["message"], line.get("policy"), line.get("uid")) for line in lines() if line["logger"] == "authors"]
    assert found == [("looked at it", policy, "u-1"), ("looked at it", policy, "u-2"), ("no policy", None, None)]


@pytest.mark.parametrize(
    ("one", "message"),
    [
        (policy_call("fails", uid="u"), "policy fails failed: the inventory\ncannot be reached (uid u)"),
        (policy_call("raises", uid="u"), "policy raises raised (uid u)"),
        (policy_call("unknown", uid="u"), "holds no policy 'unknown'"),
        (policy_call("plain", uid="u", settings={"a": 1}), "settings of policy plain"),
        (policy_call("plain", uid="u", document=b"[]"), "the document is not one JSON object"),
        (policy_call("plain", uid="u", index=3), "document_index is 3"),
        (policy_call("plain", uid="u", timeout=0), "no answer within"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.policy,
)
async def test_each_failure_is_logged_with_its_uid(worker, lines, one, message):
    """A failure is logged once, without the document; its outcome has a version."""
    async with connected(worker) as client:
        calls = client.stream()
        await calls.send(batch(one))
        (outcome,) = (await calls.rest()).values()
    assert outcome.WhichOneof("verdict") == "failure"
    assert outcome.version == "1"
    (line,) = [line for line in lines() if line["level"] == "error"]
    assert message in line["message"]
    assert (line["policy"], line["uid"]) == (one.policy, "u")


def test_a_text_message_is_one_line():
    """A line break in a message does not begin a new line."""
    with _logging(logs._Text()) as written:
        OWN.error("one\ntwo\r\n")
    line = written.getvalue()
    assert line.endswith("ERROR one\\ntwo\\r\\n\n")
    assert line.count("\n") == 1
