"""How Go writes values, and takes texts apart: %q, JSON, URLs, base64, timestamps. Expected is what Go said."""

import base64
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.gotypes.base64_text import base64_error
from gateway.gotypes.timestamps import timestamp_error
from gateway.policies import field_errors
from gateway.policies.workers.urls import Url, UrlError, parse_url
from gateway.scopes.pointer import parse_pointer


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("plain", '"plain"'),
        ('a "b" \\ c', r'"a \"b\" \\ c"'),
        ("\a\b\f\n\r\t\v", r'"\a\b\f\n\r\t\v"'),
        ("\x00\x1b\x7f", r'"\x00\x1b\x7f"'),
        ("\u00a0\u2028\ufeff", r'"\u00a0\u2028\ufeff"'),
        ("\U000e0001", r'"\U000e0001"'),
        ("é😀<>&", '"é😀<>&"'),
        ("\udcc3", r'"\xc3"'),
    ],
)
def test_quote(text, quoted):
    """A string stands as %q writes it: what is not printable is escaped, by its width."""
    assert field_errors.quote(text) == quoted


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a<b>&c", r'"a\u003cb\u003e\u0026c"'),
        ("\u2028\x7f\x01", '"\\u2028\x7f\\u0001"'),
        (["*", "é"], '["*","é"]'),
        ({"b": 1, "a": [True, None]}, '{"b":1,"a":[true,null]}'),
    ],
)
def test_json(value, text):
    """What is no plain string stands as json.Marshal writes it."""
    assert field_errors.go_json(value) == text


def test_words_of_an_enumeration():
    """A word of an enumeration is no string to Go: it stands as JSON, the supported ones as strings."""
    assert (
        field_errors.unsupported("<x>", ["b", "a"]) == r'Unsupported value: "\u003cx\u003e": supported values: "a", "b"'
    )
    assert field_errors.invalid("<x>", "no") == 'Invalid value: "<x>": no'


def test_long_values_are_cut():
    """A value of ordinary size stands whole; what is longer than 4096 characters is cut."""
    assert field_errors.quote("x" * 4096) == '"' + "x" * 4096 + '"'
    assert field_errors.quote("x" * 4097) == '"' + "x" * 4096 + '…"'
    assert len(field_errors.go_json(["x"] * 100_000)) == 4097


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("https://h/a", Url(scheme="https", host="h")),
        ("HTTPS://u:p@h:1/?#f", Url(scheme="https", host="h:1", user="u:p", fragment="f")),
        ("https://u%20x:p:q@h", Url(scheme="https", host="h", user="u%20x:p%3Aq")),
        ("https://@h", Url(scheme="https", host="h", user="")),
        ("https://[fe80::1%25en0]:1/", Url(scheme="https", host="[fe80::1%en0]:1")),
        ("https://h%ff", Url(scheme="https", host="h\udcff")),
        ("mailto:a?b", Url(scheme="mailto", query="b")),
        ("///a", Url()),
        ("//h", Url(host="h")),
        ("a/b:c", Url()),
        ("1a:b/c", "first path segment in URL cannot contain colon"),
        (":", "missing protocol scheme"),
        ("https://h\x7f", "net/url: invalid control character in URL"),
        ("https://a@b c@h", "net/url: invalid userinfo"),
        ("https://a%@h", 'invalid URL escape "%"'),
        ("https://h%aé/", 'invalid URL escape "%a\\xc3"'),
        ("https://h^", 'invalid character "^" in host name'),
        ("https://[::1%25a%2fb]", 'invalid URL escape "%2f"'),
        ("https://[1.2.3.4]", "invalid IP-literal"),
        ("https://[::1]x", 'invalid port "x" after host'),
        ("ftp://a:b:1", Url(scheme="ftp", host="a:b:1")),
    ],
)
def test_urls(text, url):
    """A URL has the parts that Go finds in it, or Go's error."""
    if isinstance(url, Url):
        assert parse_url(text) == url
    else:
        with pytest.raises(UrlError) as raised:
            parse_url(text)
        assert str(raised.value) == f"parse {field_errors.quote(text)}: {url}"


@pytest.mark.property
@given(st.text(st.characters(exclude_categories=["Cs"])) | st.text("htps:/@[]%?#. :1aé+", max_size=12))
def test_urls_never_raise_anything_else(text):
    """Whatever comes in: either it is taken apart, or that one error is raised."""
    for url in (text, "https://" + text):
        with suppress(UrlError):
            assert isinstance(parse_url(url), Url)


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("", None),
        ("YQ==", None),
        ("YW\r\nJj\n", None),
        ("YQ=\n=\n", None),
        ("YWI=", None),
        ("Y", 0),
        ("YWJjY", 4),
        ("YQ", 0),
        ("YQ=", 3),
        ("YQ=x", 2),
        ("YQ=\nx", 3),
        ("YQ==x", 4),
        ("YWI=x", 4),
        ("YWI=\n=", 5),
        ("=", 0),
        ("Y=", 1),
        ("YWé", 2),
        ("YWJj YWJj", 4),
        ("YWJj\nZ", 5),
    ],
)
def test_base64(text, offset):
    """The offset is where Go's decoder stops."""
    assert base64_error(text) == offset


@pytest.mark.property
@given(st.binary(), st.integers(0, 40))
def test_base64_round_trip(content, at):
    """Whatever is written as base64 is base64, with a line end anywhere too."""
    text = base64.b64encode(content).decode()
    assert base64_error(text) is None
    assert base64_error(text[:at] + "\n" + text[at:]) is None


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("2020-02-29T23:59:59Z", None),
        ("2020-01-01T00:00:00.123+01:00", None),
        ("2020-01-01T0:00:00,5-23:59", None),
        ("", ' as "2006-01-02T15:04:05Z07:00": cannot parse "" as "2006"'),
        ("2020-1-01", ' as "2006-01-02T15:04:05Z07:00": cannot parse "1-01" as "01"'),
        ("2020-01-01", ' as "2006-01-02T15:04:05Z07:00": cannot parse "" as "T"'),
        ("2020-01-01T00:00:00", ' as "2006-01-02T15:04:05Z07:00": cannot parse "" as "Z07:00"'),
        ("2020-13-01T00:00:00Z", ": month out of range"),
        ("2020-01-01T25:00:00Z", ": hour out of range"),
        ("2021-02-29T00:00:00Z", ": day out of range"),
        ("2020-01-00T00:00:00Z", ": day out of range"),
        ("2020-01-01T00:00:00+25:00", ": time zone offset hour out of range"),
        ("2020-01-01T00:00:00Zx", ': extra text: "x"'),
    ],
)
def test_timestamps(text, error):
    """An invalid timestamp is reported at the position where Go's parser stops."""
    assert timestamp_error(text) == (None if error is None else f'parsing time "{text}"{error}')


@pytest.mark.parametrize(
    ("pointer", "path"),
    [
        ("/metadata/labels/team", "metadata.labels.team"),
        ("/metadata/labels/example.com~1team", "metadata.labels[example.com/team]"),
        ("/spec/containers/0/image", "spec.containers[0].image"),
        ("/metadata/annotations/my-note", "metadata.annotations.my-note"),
        ('/metadata/labels/a"b', 'metadata.labels[a\\"b]'),
        ("", ""),
    ],
)
def test_field_paths(pointer, path):
    """A place is written for users as Kubernetes writes paths of fields."""
    assert field_errors.field_path(parse_pointer(pointer)) == path
