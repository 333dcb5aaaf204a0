"""Reading an AdmissionReview: all that a real API server sends, and nothing that isn't one."""

import json
from types import SimpleNamespace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.reasons import Reason
from gateway.review.request import (
    BYTES_OF_VALUE,
    LIGHT_VALUES,
    MOST_VALUES,
    READABLE_BYTES,
    READABLE_VALUES,
    ReviewError,
    TooManyValuesError,
    UnreadError,
    _Envelope,
    decode,
    decoding,
)
from tests.traffic import recording, recordings

MEMBERS = {
    "uid": "uid",
    "operation": "operation",
    "name": "name",
    "namespace": "namespace",
    "subResource": "sub_resource",
    "dryRun": "dry_run",
    "object": "object",
    "oldObject": "old_object",
    "options": "options",
    "requestSubResource": "request_sub_resource",
}


def review(**request):
    base = {
        "uid": "u1",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "operation": "CREATE",
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {**base, **request}}


def body(**request):
    return json.dumps(review(**request)).encode()


@pytest.mark.parametrize("traffic", recordings(), ids=lambda each: each.name)
def test_every_recorded_review_is_read_field_by_field_as_json_reads_it(traffic):
    """What a real API server sends is read exactly; a field that is absent reads as its empty value."""
    request = decode(traffic.body)
    plain = json.loads(traffic.body)
    expected = plain["request"]

    assert request.api_version == plain["apiVersion"]
    for name, attribute in MEMBERS.items():
        if name in expected:
            assert getattr(request, attribute) == expected[name]
        else:
            assert not getattr(request, attribute)
    for name, value in (
        ("kind", request.kind),
        ("resource", request.resource),
        ("requestKind", request.request_kind),
        ("requestResource", request.request_resource),
    ):
        assert {field: getattr(value, field) for field in value.__struct_fields__} == expected[name]
    user = expected["userInfo"]
    assert request.user_info.username == user.get("username", "")
    assert request.user_info.uid == user.get("uid", "")
    assert (request.user_info.groups or []) == user.get("groups", [])
    assert (request.user_info.extra or {}) == user.get("extra", {})


@pytest.mark.parametrize("traffic", recordings(), ids=lambda each: each.name)
def test_members_keep_their_bytes_and_order(traffic):
    """Joining the members again gives the request as it came: members that are not read are not parsed."""
    request = decode(traffic.body)
    joined = b"{" + b",".join(b'"%s":%s' % (name.encode(), bytes(raw)) for name, raw in request.members.items()) + b"}"
    assert joined in traffic.body


def test_unknown_members_are_kept():
    """A member that a later Kubernetes adds can be read."""
    assert decode(body(someday={"a": [1]})).raw("someday") == b'{"a": [1]}'


def test_the_object_is_decoded_once():
    """All readers get the same value: structure can be shared."""
    request = decode(recording("pod-create.0m").body)
    assert request.object is request.object


def test_a_duplicate_key_means_its_last_value():
    """As in the API server's own decoder."""
    text = body().replace(b'"request": {', b'"request": {"uid": "first", ', 1)
    assert text.count(b'"uid"') == 2
    assert decode(text).uid == "u1"


def test_a_missing_request_resource_is_the_resource():
    """Reviews written by hand need not say what was not converted."""
    request = decode(body(subResource="status"))
    assert (request.request_resource, request.request_kind) == (request.resource, request.kind)
    assert request.request_sub_resource == "status"


REFUSED = {
    "empty": (b"", "empty"),
    "blank": (b" \n", "not JSON"),
    "not JSON": (b"hello", "not JSON"),
    "truncated": (body()[:-9], "not JSON"),
    "trailing text": (body() + b"x", "not JSON"),
    "a byte order mark": (b"\xef\xbb\xbf" + body(), "not JSON"),
    "not UTF-8": (b'{"kind":"\xff"}', "not UTF-8: byte 9"),
    "UTF-16": (json.dumps(review()).encode("utf-16"), "not UTF-8"),
    "a list": (b"[]", "not an AdmissionReview"),
    "a number for kind": (b'{"kind":1}', "not an AdmissionReview"),
    "another kind": (b'{"kind":"Pod","apiVersion":"v1"}', "kind"),
    "no kind": (b"{}", "kind"),
    "an unknown version": (json.dumps(review() | {"apiVersion": "admission.k8s.io/v2"}).encode(), "apiVersion"),
    "no version": (b'{"kind":"AdmissionReview","request":{}}', "apiVersion"),
    "no request": (b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}', "no request"),
    "request null": (b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":null}', "no request"),
    "no uid": (json.dumps({**review(), "request": {}}).encode(), "uid"),
    "an empty uid": (body(uid=""), "uid"),
    "a number for uid": (body(uid=7), "uid"),
    "no kind in the request": (body(kind=None), "kind"),
    "an unknown operation": (body(operation="CONJURE"), "operation"),
    "a string for dryRun": (body(dryRun="yes"), "dryRun"),
    "a lone surrogate": (body().replace(b'"u1"', b'"\\ud800"'), "not JSON"),
    "257 levels": (body(object="@").replace(b'"@"', b"[" * 255 + b"]" * 255), "deeper than 256"),
    "a million levels": (b"[" * 1_000_000, "deeper than 256"),
}


@pytest.mark.parametrize(("text", "said"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_review_is_refused_with_what_is_wrong(text, said):
    """One error type, one line, and no content of the body in it."""
    with pytest.raises(ReviewError, match=said) as caught:
        decode(text)
    assert "\n" not in str(caught.value)


LATE = {
    "a number beyond float64": (b"1e400", "object"),
    "an object that is a list": (b"[1]", "object"),
    "ten thousand digits": (b'{"n":' + b"1" * 10_000 + b"}", "object"),
}


@pytest.mark.parametrize(("text", "said"), LATE.values(), ids=LATE)
def test_an_unreadable_object_is_found_when_it_is_read(text, said):
    """Lazy means later, not never, and the error is the same."""
    request = decode(body(object="@").replace(b'"@"', text))
    with pytest.raises(ReviewError, match=said):
        _ = request.object


def test_256_levels_are_read():
    """The limit itself is allowed: the review's own two levels, object, and 253 lists in it."""
    text = body(object={"a": "@"}).replace(b'"@"', b"[" * 253 + b"]" * 253)
    assert decode(text).object["a"]


@pytest.mark.property
@given(st.binary(max_size=300))
def test_any_bytes_are_a_review_or_a_review_error(text):
    """Whatever comes in, either it is read or that one error is raised."""
    _read_all(text)


@pytest.mark.property
@given(st.data())
def test_any_broken_review_is_a_review_or_a_review_error(data):
    """The same for real traffic with bytes replaced, dropped or doubled."""
    text = bytearray(data.draw(st.sampled_from(recordings())).body[:6000])
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(text) - 1))
        text[place : place + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    _read_all(bytes(text))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.property
@given(st.sampled_from(sorted({*MEMBERS, "kind", "resource", "userInfo", "requestKind", "requestResource"})), JSON)
def test_a_member_of_any_type_is_read_or_a_review_error(name, value):
    """A member of a wrong type is an error of the sender, whichever it is."""
    _read_all(json.dumps(review(**{name: value})).encode())


def _read_all(text):
    try:
        request = decode(text)
        for attribute in (*MEMBERS.values(), "user_info", "request_kind", "request_resource"):
            getattr(request, attribute)
    except ReviewError:
        pass


def with_values(number):
    """An AdmissionReview whose object is an array in an array, of some values."""
    return body(object="@").replace(b'"@"', b'{"spec":[' + b",".join([b"[]"] * (number // 2)) + b"]}")


@pytest.mark.parametrize("member", ["object", "oldObject"])
def test_a_member_of_too_many_values_is_not_parsed(member):
    """It can be copied but not read, whatever its bytes; small members can be read."""
    name = {"object": "object", "oldObject": "old_object"}[member]
    request = decode(with_values(READABLE_VALUES + 100).replace(b'"object"', b'"%s"' % member.encode()))
    assert request.raw(member).startswith(b'{"spec":[[],[]')
    with pytest.raises(
        UnreadError, match=f"the limit for a policy that reads parts of it is {READABLE_VALUES}"
    ) as found:
        getattr(request, name)
    assert found.value.reason is Reason.REQUEST_TOO_LARGE
    assert not request.is_parsed
    assert request.user_info.username == ""


def test_a_string_of_brackets_is_one_value():
    """What stands in a string is not counted against the limit: it costs no more than any other text."""
    request = decode(body(object={"data": {"csv": "[,{" * READABLE_VALUES}}))
    assert request.values < 100 + request.size // BYTES_OF_VALUE
    assert request.object["data"]


def test_a_review_of_far_too_many_values_is_not_even_split_up():
    """Its members would be copied for nothing."""
    with pytest.raises(TooManyValuesError, match=f"the limit is {MOST_VALUES}"):
        decode(with_values(MOST_VALUES + 100))


@pytest.mark.parametrize("number", [100, LIGHT_VALUES + 100, READABLE_VALUES + 100])
def test_decoding_takes_breaks(number):
    """The slices grow with the text, and give the same request; a light one needs none."""
    text, slices, steps = with_values(number), 0, None
    steps = decoding(text)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            request = done.value
            break
        slices += 1
    assert request.members == decode(text).members
    assert slices == (0 if number <= LIGHT_VALUES else len(text) // 65_536 + 2 + len(text) // 1_048_576 + 1)


class Watched(bytes):
    """A body that notes, in ``read``, how many of its bytes are cut out or decoded at once."""

    def __new__(cls, content):
        made = super().__new__(cls, content)
        made.read = []
        return made

    def __getitem__(self, key):
        piece = super().__getitem__(key)
        if isinstance(piece, bytes):
            self.read.append(len(piece))
        return piece

    def decode(self, *arguments):
        self.read.append(len(self))
        return super().decode(*arguments)


@pytest.mark.parametrize(
    "text",
    [b'"%s"' % ("😀" * 2_500_000).encode(), b'"%s"' % (b"\\u003c" * 1_600_000), b"[%s0]" % (b"[]," * 100_000)],
    ids=["emoji", "escapes", "values"],
)
def test_the_work_between_two_breaks_is_bounded(text, monkeypatch):
    """At most a megabyte of the body is read in a slice, and its members are separated in one that reads nothing."""
    watched, slices = Watched(body(object="@").replace(b'"@"', b'{"spec":%s}' % text)), []
    envelope = SimpleNamespace(
        decode=lambda read: watched.read.append(None) or msgspec.json.decode(read, type=_Envelope)
    )
    monkeypatch.setattr("gateway.review.request._envelope", envelope)
    steps = decoding(watched)
    while True:
        watched.read.clear()
        try:
            next(steps)
        except StopIteration as done:
            decoded = done.value
            break
        slices.append(sum(watched.read))
    assert decoded.size == len(watched)
    assert watched.read == [None]
    assert max(slices) <= 1_048_576 + 1


@pytest.mark.parametrize("at", [0, 1, 2, 3, 4, 500_000])
@pytest.mark.parametrize("wrong", [b"\xff", b"\xf0\x9f\x98", b"\x80\x80\x80\x80"])
def test_what_is_not_utf_8_is_found_at_its_byte_in_any_slice(wrong, at):
    """A character that is cut by a slice is whole, and a wrong byte is reported as in one piece."""
    text = body(object="@").replace(b'"@"', b'{"spec":"%s"}' % (b"x" * at + "😀".encode() * 1_500_000))
    decode(text)
    place = 2**20 + at
    text = text[:place] + wrong + text[place:]
    with pytest.raises(UnicodeDecodeError) as expected:
        text.decode()
    with pytest.raises(ReviewError, match=f"^the body is not UTF-8: byte {expected.value.start} "):
        decode(text)


def test_a_body_of_many_bytes_is_heavy():
    """Its bytes are charged as well: it takes a turn, whatever it holds."""
    assert decode(body(object={"spec": "x" * LIGHT_VALUES * BYTES_OF_VALUE})).values > LIGHT_VALUES
    assert decode(body(object={"spec": "x" * 3_000_000})).values < LIGHT_VALUES


def test_a_member_of_too_many_bytes_is_not_parsed():
    """It would be parsed in one call: it can be copied but not read."""
    request = decode(body(object={"spec": "x" * READABLE_BYTES}, oldObject={"spec": "y" * (READABLE_BYTES - 100)}))
    with pytest.raises(UnreadError, match=rf"request\.object has .* parts of it is {READABLE_BYTES}") as found:
        _ = request.object
    assert found.value.reason is Reason.REQUEST_TOO_LARGE
    assert request.old_object["spec"]


@pytest.mark.parametrize(
    ("number", "count"), [(b"1.7976931348623157e+308", 130_000), (b"9" * 4_300, 697), (b"2.5e-310", 150_000)]
)
def test_an_object_of_costly_numbers_is_not_parsed(number, count):
    """Each costs as much as many values, and is charged so."""
    request = decode(body(object="@").replace(b'"@"', b'{"spec":[%s]}' % b",".join([number] * count)))
    with pytest.raises(UnreadError, match=f"the limit for a policy that reads parts of it is {READABLE_VALUES}"):
        _ = request.object


def test_nesting_is_found_in_the_middle_of_many_values():
    """A review of many values is refused for its depth as any other."""
    deep = b"[" * 300 + b"]" * 300
    text = with_values(LIGHT_VALUES * 4).replace(b'"spec":[[],', b'"spec":[' + deep + b",")
    with pytest.raises(ReviewError, match="nests deeper than 256 levels"):
        decode(text)
