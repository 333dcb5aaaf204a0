"""Named formats: what is wrong with a text, in Kubernetes' words."""

import base64
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.cel.libraries.named_formats import FORMATS, label_problems, subdomain_problems
from tests.cel.evaluation import value

LABEL_1035 = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character,"
    " and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is"
    " '[a-z]([-a-z0-9]*[a-z0-9])?')"
)


def problems(name, text):
    return value(f"format.{name}().validate(a).orValue([])", a=text)


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("dns1123Label", ["a", "a-b", "1a", "a" * 63], ["", "A", "-a", "a-", "a.b", "a_b", "a" * 64]),
        ("dns1123Subdomain", ["a", "a.b", "1.2"], ["", "a..b", ".a", "A.b", "a" * 254]),
        ("dns1035Label", ["a", "a1"], ["1a", "", "a-"]),
        ("qualifiedName", ["a", "A_b.c", "example.com/a"], ["", "/a", "a/", "a/b/c", "-a", "EXAMPLE.com/a", "a" * 64]),
        ("dns1123LabelPrefix", ["a", "a-"], ["-", "A", "-a"]),
        ("dns1123SubdomainPrefix", ["a.b-", "a"], ["A", ".a"]),
        ("dns1035LabelPrefix", ["a-", "a"], ["1", "-"]),
        ("labelValue", ["", "a", "A_b.c-1"], ["-a", "a-", "a b", "a" * 64]),
        ("uri", ["https://a/b", "/a"], ["a b", "a"]),
        ("uuid", ["123e4567-e89b-12d3-a456-426614174000", "123E4567E89B12D3A456426614174000"], ["x", ""]),
        ("byte", ["aGk=", "aGVsbG8="], ["a", "*"]),
        ("date", ["2024-02-29", "0000-02-29"], ["2023-02-29", "2024-1-1", "x"]),
        (
            "datetime",
            ["2024-01-01T00:00:00Z", "2024-01-01t00:00:00+01:00"],
            ["2024-01-01", "2024-01-01T24:00:00Z", "x"],
        ),
    ],
)
def test_what_is_one_and_what_is_not(name, good, bad):
    """A good text has no problems, a bad one at least one."""
    assert [problems(name, text) for text in good] == [[]] * len(good)
    assert [bool(problems(name, text)) for text in bad] == [True] * len(bad)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("dns1123Label", "a.b", ["must not contain dots"]),
        ("dns1123Label", "a" * 64, ["must be no more than 63 characters"]),
        (
            "dns1035Label",
            "1a",
            [LABEL_1035],
        ),
        ("labelValue", "a" * 64, ["must be no more than 63 bytes"]),
        ("uuid", "x", ["does not match the UUID format"]),
        ("byte", "*", ["invalid base64"]),
        ("date", "x", ["invalid date"]),
        ("datetime", "x", ["invalid datetime"]),
    ],
)
def test_what_is_wrong_is_said_in_the_words_of_kubernetes(name, text, words):
    """Of its validation package."""
    assert problems(name, text) == words


def test_a_format_can_be_had_by_its_name():
    """As an optional."""
    assert value("format.named('dns1123Label').hasValue()") is True
    assert value("format.named('nope').hasValue()") is False
    assert value("format.named('uuid').value() == format.uuid()") is True
    assert value("format.named('uuid').value() == format.byte()") is False


@pytest.mark.property
@given(st.uuids(), st.binary(min_size=1, max_size=30), st.dates())
def test_what_python_writes_is_one(an_uuid, data, day):
    """UUIDs, base64, dates."""
    assert problems("uuid", str(an_uuid)) == []
    assert problems("byte", base64.b64encode(data).decode()) == []
    assert problems("date", day.isoformat()) == []
    assert uuid.UUID(str(an_uuid)) == an_uuid


@pytest.mark.property
@given(st.text(alphabet="ab1-.A_/é \n", max_size=70))
def test_a_label_is_a_subdomain_and_a_subdomain_of_one_label_is_a_label(text):
    """Each format agrees with those that it is made of."""
    if not label_problems(text):
        assert not subdomain_problems(text)
    if not subdomain_problems(text) and "." not in text and len(text) <= 63:
        assert not label_problems(text)


@pytest.mark.property
@given(st.sampled_from(sorted(FORMATS)), st.text(max_size=40))
def test_every_text_has_problems_or_none(name, text):
    """A list of texts, whatever it is."""
    assert all(isinstance(problem, str) for problem in FORMATS[name].problems(text))
