"""A document shows what is declared and nothing else: over recorded requests, changed at random places."""

import json
from random import Random

import pytest
from hypothesis import given

from gateway.documents.documents import DocumentBuilder
from gateway.review.request import ReviewError, decode
from gateway.scopes.inputs import ALWAYS, Inputs
from gateway.scopes.pointer_set import ANY
from tests.documents.mutations import (
    CHANGEABLE,
    SEEDS,
    encoded,
    inputs_of,
    mutated,
    patterns_for,
    requests,
)
from tests.scopes.model import found, inside, part
from tests.traffic import recordings
from tests.world import request


def document(on, inputs, **state):
    """The document about a request as it came."""
    return DocumentBuilder(on).of(inputs, None, changed=False, **state)


def drawn(random: Random):
    """A recorded request and pointers into it."""
    chosen = random.choice(requests())
    return chosen, patterns_for(random, chosen)


@pytest.mark.property
@given(SEEDS)
def test_a_change_makes_another_document_exactly_if_it_is_declared(random):
    """Of two requests that differ in one place, the bytes are equal if it is hidden, and differ if it is shown."""
    before, patterns = drawn(random)
    inputs = inputs_of(patterns)
    change = mutated(random, before, patterns)
    one, other = document(encoded(before), inputs), document(encoded(change.request), inputs)
    assert (one.content != other.content) == change.seen
    assert (one.digest != other.digest) == change.seen


@pytest.mark.property
@given(SEEDS)
def test_a_change_to_the_object_under_review_counts_exactly_if_it_is_declared(random):
    """It is the very same document while the policies before it change what it does not show."""
    before, patterns = drawn(random)
    change = mutated(random, before, patterns)
    documents, inputs = DocumentBuilder(encoded(before)), inputs_of(patterns)
    if change.request["object"] == before["object"]:
        return
    first = documents.of(inputs, None, changed=False)
    second = documents.of(inputs, change.request["object"], changed=True)
    if not inside(("object",), patterns):
        assert (second is not first) == change.seen
    assert json.loads(second.content) == json.loads(document(encoded(change.request), inputs).content)
    assert documents.of(inputs, None, changed=False).content == first.content


@pytest.mark.property
@given(SEEDS)
def test_a_document_is_the_model_s_in_the_request_s_own_order(random):
    """What the request is about, then the declared part of each other member; to the byte what is shown whole."""
    chosen, patterns = drawn(random)
    expected = {}
    for name, value in chosen.items():
        if name in ALWAYS:
            expected[name] = value
        elif any(pattern[0] == name for pattern in patterns):
            shown = part(value, patterns, (name,))
            if value is shown or isinstance(shown, (dict, list)):
                expected[name] = shown
    content = document(encoded(chosen), inputs_of(patterns)).content
    assert json.dumps(json.loads(content)) == json.dumps(expected)


@pytest.mark.property
@given(SEEDS)
def test_a_pointer_means_in_the_document_what_it_means_in_the_request(random):
    """For every place that is declared, and for the length of every array on the way."""
    chosen, patterns = drawn(random)
    shown = dict(found(json.loads(document(encoded(chosen), inputs_of(patterns)).content)))
    for pointer, value in found(chosen):
        if pointer and inside(pointer, patterns):
            assert shown[pointer] == value
        if isinstance(value, list) and isinstance(shown.get(pointer), list) and shown[pointer]:
            assert len(shown[pointer]) == len(value)


@pytest.mark.property
@given(SEEDS)
def test_wider_inputs_show_more_and_hide_nothing(random):
    """What stands in a document stands in that of wider inputs, and in that of none."""
    chosen, patterns = drawn(random)
    wider = [*patterns, *patterns_for(random, chosen)]
    narrow, wide, all_of_it = (
        dict(found(json.loads(document(encoded(chosen), inputs).content)))
        for inputs in (inputs_of(patterns), inputs_of(wider), Inputs.EVERYTHING)
    )
    assert narrow.keys() <= wide.keys() <= all_of_it.keys()


@pytest.mark.property
@given(SEEDS)
def test_the_document_of_narrower_inputs_is_the_projection_of_the_wider_one_s(random):
    """Called about a wide document, as if it were a request, narrow inputs give the narrow one."""
    chosen, patterns = drawn(random)
    wide = document(encoded(chosen), inputs_of([*patterns, *patterns_for(random, chosen)]))
    again = encoded({"uid": "u", **json.loads(wide.content)})
    narrow = document(encoded(chosen), inputs_of(patterns))
    assert json.loads(document(again, inputs_of(patterns)).content) == json.loads(narrow.content)


@pytest.mark.property
@given(SEEDS)
def test_nothing_undeclared_ever_appears(random):
    """With a mark in place of every undeclared text and number of the request, there is no mark in the document."""
    chosen, patterns = drawn(random)
    marked = encoded({name: _marked(value, (name,), patterns) for name, value in chosen.items()})
    assert b"planted" not in document(marked, inputs_of(patterns)).content


def _marked(value, at, patterns):
    if isinstance(value, dict):
        return {name: _marked(child, (*at, name), patterns) for name, child in value.items()}
    if isinstance(value, list):
        return [_marked(child, (*at, str(index)), patterns) for index, child in enumerate(value)]
    fixed = value is None or at[0] not in {*CHANGEABLE, "name", "namespace"} or inside(at, patterns)
    return value if fixed else "planted"


@pytest.mark.parametrize("inputs", [Inputs.EVERYTHING, inputs_of([]), inputs_of([()]), inputs_of([(ANY,)])])
@pytest.mark.parametrize("traffic", recordings()[::9], ids=lambda each: each.name)
def test_the_uid_is_in_no_document(traffic, inputs):
    """Not even if every member is asked for."""
    on = decode(traffic.body)
    assert on.uid.encode() not in document(on, inputs).content


@pytest.mark.parametrize("traffic", recordings(), ids=lambda each: each.name)
def test_whole_members_pass_as_the_api_server_wrote_them(traffic):
    """Each that is declared whole, to the byte; the one of 1 MB too."""
    on = decode(traffic.body)
    for name, raw in on.members.items():
        if name != "uid":
            content = document(on, inputs_of([(name,)])).content
            assert b'"%s":%s' % (name.encode(), bytes(raw)) in content
            assert set(json.loads(content)) == {name, *ALWAYS} & set(on.members)


@pytest.mark.property
@given(SEEDS)
def test_equal_values_in_equal_order_are_equal_bytes(random):
    """Blanks and escapes of a member that is shown in part do not count."""
    chosen, patterns = drawn(random)
    in_part = inputs_of([each for each in patterns if len(each) > 1])
    members = [
        f"{json.dumps(name)}:{json.dumps(value, **(_TIGHT if name in ALWAYS else _WIDE))}"
        for name, value in chosen.items()
    ]
    review = '{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{' + ",".join(members) + "}}"
    assert document(decode(review.encode()), in_part).content == document(encoded(chosen), in_part).content


_TIGHT = {"separators": (",", ":")}
_WIDE = {"indent": 1}


def test_an_unreadable_member_is_an_error_of_the_review_only_if_a_part_is_shown():
    """A number that no machine can hold: passed on untouched, or refused by name; never a traceback."""
    body = json.dumps(
        {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": {**requests()[0], "someday": {"a": "HUGE"}},
        }
    ).replace('"HUGE"', "1e999")
    on = decode(body.encode())
    assert b'"someday":{"a": 1e999}' in document(on, inputs_of([("someday",)])).content
    with pytest.raises(ReviewError, match=r"request\.someday cannot be read"):
        document(on, inputs_of([("someday", "a")]))


def test_no_object_no_part_of_it():
    """On a DELETE ``object`` is null: above a declared place that does not appear, declared whole it is null."""
    on = request({}, object=None, oldObject={"metadata": {"labels": {"a": "b"}}}, operation="DELETE")
    in_part = json.loads(document(on, inputs_of([(ANY, "metadata", "labels")])).content)
    assert "object" not in in_part
    assert in_part["oldObject"] == {"metadata": {"labels": {"a": "b"}}}
    assert json.loads(document(on, inputs_of([("object",)])).content)["object"] is None
