"""``admission_worker.testing``: a policy gets the same document as from the gateway."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission_worker import EVERYTHING, Allow, InvalidAnswerError, InvalidSettingsError, Worker, deny, merge, pointer
from admission_worker.pointers import tokens
from admission_worker.projection import document_of
from admission_worker.testing import review, review_async
from tests.traffic import recordings

REQUEST = {
    "uid": "u",
    "kind": {"kind": "Pod"},
    "operation": "CREATE",
    "userInfo": {"username": "a"},
    "object": {
        "metadata": {"labels": {"a/b": "1", "c": "2"}, "name": "n"},
        "spec": {"containers": [{"name": "x", "image": "i"}, {"name": "y"}], "list": [[1], {"k": 1}, "text"]},
    },
    "oldObject": None,
}

ALWAYS = {"kind": {"kind": "Pod"}, "operation": "CREATE"}

PROJECTIONS = [
    (None, {name: value for name, value in REQUEST.items() if name != "uid"}),
    (EVERYTHING, {name: value for name, value in REQUEST.items() if name != "uid"}),
    ((), ALWAYS),
    (("/object/metadata/labels",), ALWAYS | {"object": {"metadata": {"labels": {"a/b": "1", "c": "2"}}}}),
    (("/object/metadata/labels/a~1b",), ALWAYS | {"object": {"metadata": {"labels": {"a/b": "1"}}}}),
    (("/object/metadata/annotations/x",), ALWAYS | {"object": {"metadata": {}}}),
    (("/object/metadata/name/deeper",), ALWAYS | {"object": {"metadata": {}}}),
    (("/oldObject/metadata",), ALWAYS),
    (("/oldObject",), ALWAYS | {"oldObject": None}),
    (
        ("/object/spec/containers/*/name",),
        ALWAYS | {"object": {"spec": {"containers": [{"name": "x"}, {"name": "y"}]}}},
    ),
    (("/object/spec/containers/1/name",), ALWAYS | {"object": {"spec": {"containers": [{}, {"name": "y"}]}}}),
    (("/object/spec/list/9",), ALWAYS | {"object": {"spec": {"list": [[], {}, None]}}}),
    (
        ("/object/metadata/labels/c", "/object/metadata"),
        ALWAYS | {"object": {"metadata": REQUEST["object"]["metadata"]}},
    ),
    (
        ("/object/spec/containers/*/name", "/object/spec/containers/0/image"),
        ALWAYS | {"object": {"spec": {"containers": [{"name": "x", "image": "i"}, {"name": "y"}]}}},
    ),
]


@pytest.mark.parametrize(("inputs", "document"), PROJECTIONS)
def test_a_document_holds_what_is_claimed(inputs, document):
    """A document has the claimed values, their parents and the members of every document; arrays keep positions."""
    assert document_of(REQUEST, inputs) == document


def _places(value, above=()):
    yield above
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, part in parts:
        yield from _places(part, (*above, str(name)))


def _get(value, place):
    for token in place:
        value = value[int(token) if isinstance(value, list) else token]
    return value


BODIES = [json.loads(each.body)["request"] for each in recordings() if len(each.body) < 10_000]


@pytest.mark.property
@given(st.data())
def test_a_document_shows_every_claimed_value_where_it_was(data):
    """In any real request claimed parts keep value and place, and a wider claim hides no part."""
    request = data.draw(st.sampled_from(BODIES))
    places = [place for place in _places(request) if place and place != ("uid",)]
    chosen = data.draw(st.lists(st.sampled_from(places), max_size=4))
    document = document_of(
        request, tuple("".join(f"/{t.replace('~', '~0').replace('/', '~1')}" for t in p) for p in chosen)
    )
    for place in chosen:
        assert _get(document, place) == _get(request, place)
    assert "uid" not in document


@given(st.lists(st.text(), min_size=1))
def test_pointers_lead_back_to_their_tokens(path):
    """``tokens`` is the inverse of ``pointer``."""
    assert tokens(pointer(*path)) == tuple(path)


class Settings(msgspec.Struct):
    """Some settings."""

    n: int = 0


@pytest.fixture
def worker():
    made = Worker("test", version="1")

    @made.validating("labels", settings=Settings, inputs=["/object/metadata/labels"])
    def labels(request, settings):
        return deny(f"{sorted(request.document)} {sorted(request.object['metadata'])} {settings.n}")

    @made.mutating("async")
    async def coroutine(request):
        return merge({"name": request.operation})

    @made.validating("changes")
    def changes(request):
        return merge({})

    @made.validating("raises", blocking=True)
    def raises(request):
        raise KeyError("x")

    return made


def test_a_policy_sees_only_what_it_claims(worker):
    """A policy that reads more than it claims fails its test."""
    assert review(worker, "labels", REQUEST, {"n": 3}).message == "['kind', 'object', 'operation'] ['labels'] 3"


def test_a_whole_review_may_be_given(worker):
    """``review`` takes a recorded AdmissionReview."""
    assert review(worker, "labels", {"kind": "AdmissionReview", "request": REQUEST}).message.endswith("0")


async def test_coroutines_are_awaited(worker):
    """A coroutine function runs in a loop and without one."""
    assert (await review_async(worker, "async", {"operation": "UPDATE"})).change.value == {"name": "UPDATE"}
    assert isinstance(await review_async(worker, "async", {}), Allow)


def test_coroutines_are_run(worker):
    """``review`` runs a coroutine function in its own loop."""
    assert review(worker, "async", {"operation": "UPDATE"}).change.value == {"name": "UPDATE"}


def test_errors_are_raised(worker):
    """A failure in a cluster is an exception in a test."""
    with pytest.raises(LookupError, match="it holds: labels, async, changes, raises"):
        review(worker, "unheard-of", {})
    with pytest.raises(InvalidSettingsError, match="/n: Expected `int`"):
        review(worker, "labels", {}, {"n": "x"})
    with pytest.raises(InvalidAnswerError, match="only a mutating policy"):
        review(worker, "changes", {})
    with pytest.raises(KeyError):
        review(worker, "raises", {})
