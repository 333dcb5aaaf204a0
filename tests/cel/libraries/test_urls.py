"""URLs, as Go reads them."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cel.evaluation import ENVIRONMENT, error, value


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("https://example.com:80/a/b?k=v#f", ("https", "example.com:80", "example.com", "80", "/a/b")),
        ("https://user:pw@example.com/", ("https", "example.com", "example.com", "", "/")),
        ("https://[::1]:8080/x", ("https", "[::1]:8080", "::1", "8080", "/x")),
        ("HTTP://EXAMPLE.com", ("http", "EXAMPLE.com", "EXAMPLE.com", "", "")),
        ("/just/a/path", ("", "", "", "", "/just/a/path")),
        ("//host/path", ("", "host", "host", "", "/path")),
        ("mailto:a@example.com", ("mailto", "", "", "", "")),
        ("https://example.com/a b", ("https", "example.com", "example.com", "", "/a%20b")),
        ("https://example.com/%41", ("https", "example.com", "example.com", "", "/%41")),
        ("https://example.com/é", ("https", "example.com", "example.com", "", "/%C3%A9")),
        ("*", ("", "", "", "", "*")),
    ],
)
def test_a_url_has_parts(url, parts):
    """Scheme, host with port, hostname, port and escaped path."""
    getters = ("getScheme", "getHost", "getHostname", "getPort", "getEscapedPath")
    found = tuple(value(f"url(a).{getter}()", a=url) for getter in getters)
    assert found == parts


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", {}),
        ("a=1&b=2&a=3", {"a": ["1", "3"], "b": ["2"]}),
        ("a", {"a": [""]}),
        ("a+b=c%20d", {"a b": ["c d"]}),
        ("a=%zz&b=1", {"b": ["1"]}),
        ("a;b=1&c=2", {"c": ["2"]}),
        ("&&", {}),
    ],
)
def test_a_query_is_a_map_of_lists(query, expected):
    """What cannot be read is left out."""
    assert value("url(a).getQuery()", a=f"https://example.com/?{query}") == expected


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("", "empty url"),
        ("example.com", "invalid URI for request"),
        (":foo", "missing protocol scheme"),
        ("https://a:b/", 'invalid port ":b" after host'),
        ("https://[::1/", "missing ']' in host"),
        ("https://[1.2.3.4]/", "invalid IP-literal"),
        ("https://a/%zz", 'invalid URL escape "%zz"'),
        ("https://a%41b/", 'invalid URL escape "%41"'),
        ("https://a b/", 'invalid character " " in host name'),
        ("https://us er@a/", "net/url: invalid userinfo"),
        ("https://a/\x7f", "net/url: invalid control character in URL"),
        ("https://[::1]x/", 'invalid port "x" after host'),
        ("https://a[::1]/", "invalid IP-literal"),
        ("https://[fe80::1%25%2F]/", 'invalid URL escape "%2F"'),
    ],
)
def test_what_is_no_url_is_an_error(url, message):
    """In the words of net/url."""
    assert error("url(a)", a=url).endswith(message)
    assert error("url(a)", a=url).startswith("URL parse error during conversion from string: parse ")
    assert value("isURL(a)", a=url) is False


def test_what_is_a_path_in_a_request_may_be_no_url():
    """Go reads it twice: once as a request has it, once as a URL."""
    assert value("isURL(a)", a="//[::1/") is True
    assert error("url(a)", a="//[::1/").endswith("missing ']' in host")


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("https://a/b", "HTTPS://a/b", True),
        ("https://a/b", "https://a/b?", False),
        ("https://a/b", "https://a/c", False),
        ("https://a/%41", "https://a/A", False),
    ],
)
def test_urls_are_equal_if_they_are_written_alike(one, other, expected):
    """As Go writes them."""
    assert value("url(a) == url(b)", a=one, b=other) is expected


@pytest.mark.property
@given(st.text(alphabet="htps:/?#[]@%41.a-Z é\t0+&=;", max_size=24))
def test_every_text_is_a_url_or_none(text):
    """And what is one has parts that are texts."""
    program = ENVIRONMENT.compile("url(a).getScheme() + url(a).getHost() + url(a).getEscapedPath()")
    outcome = program.evaluate({"a": text}).outcome
    if value("isURL(a)", a=text) and "#" not in text:
        assert isinstance(outcome, str)
    with suppress(AttributeError):
        assert "internal error" not in outcome.message


@pytest.mark.property
@given(
    st.text(alphabet="abcXYZ09-._~", min_size=1, max_size=8),
    st.integers(1, 65535),
    st.text(alphabet="abc/", max_size=8),
)
def test_what_a_url_is_made_of_is_what_it_has(host, port, path):
    """Host, port and path."""
    url = f"https://{host}:{port}/{path}"
    assert value("url(a).getHostname()", a=url) == host
    assert value("url(a).getPort()", a=url) == str(port)
    assert value("url(a).getEscapedPath()", a=url) == f"/{path}"
