"""The parts of a call that need no connection: URLs, bodies, media types."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.policies.workers.targets import ServiceReference, WebhookTarget
from gateway.transports.webhook.call import review_body
from gateway.transports.webhook.endpoint import WebhookEndpoint
from gateway.transports.webhook.media import MediaTypeError, media_type


@pytest.mark.parametrize(
    ("url", "expected", "target"),
    [
        ("https://h.example", "https://h.example/", "h.example:443"),
        ("https://h.example/", "https://h.example/", "h.example:443"),
        ("https://H.example:443/a/b", "https://H.example:443/a/b", "H.example:443"),
        ("https://h:8443//a//b/../c/./", "https://h:8443/a/c", "h:8443"),
        ("https://h/../../a", "https://h/a", "h:443"),
        ("https://h/a%20b%2Fc%3Fd", "https://h/a%20b/c%3Fd", "h:443"),
        ("https://h/a!(b)*;c,d=e&f@g$h+i:j", "https://h/a%21%28b%29%2A;c,d=e&f@g$h+i:j", "h:443"),
        ("https://h/\u00e4", "https://h/%C3%A4", "h:443"),
        ("https://h/a?", "https://h/a", "h:443"),
        ("https://[::1]:8443/a", "https://[::1]:8443/a", "[::1]:8443"),
        # As Go has it: a port is joined to what is in brackets already.
        ("https://[::1]/a", "https://[::1]/a", "[[::1]]:443"),
    ],
)
def test_a_url_is_written_as_kube_apiserver_writes_it(url, expected, target):
    """Its path is cleaned and escaped by Go; users of a kubeconfig are named after its host."""
    endpoint = WebhookEndpoint(WebhookTarget(url=url))
    assert (endpoint.url, endpoint.target) == (expected, target)
    assert endpoint.with_timeout(7) == f"{expected}?timeout=7s"


@pytest.mark.parametrize(("path", "expected"), [("", "/"), ("/", "/"), ("/v1/judge/", "/v1/judge")])
def test_a_service_is_a_url_with_its_port(path, expected):
    """Also if that is 443."""
    service = ServiceReference(name="judge", namespace="hooks", path=path)
    endpoint = WebhookEndpoint(WebhookTarget(service=service))
    assert endpoint.url == f"https://judge.hooks.svc:443{expected}"
    assert (endpoint.target, endpoint.host, endpoint.port) == ("judge.hooks.svc:443", "judge.hooks.svc", 443)


@pytest.mark.property
@given(st.text(max_size=40))
def test_a_redirect_stays_at_its_host_and_port_or_is_none(location):
    """Whatever a Location says."""
    endpoint = WebhookEndpoint(WebhookTarget(url="https://h.example:8443/a/b"))
    moved = endpoint.redirect_url(endpoint.with_timeout(1), location)
    assert moved is None or (moved.lower() + "/").startswith(("https://h.example:8443/", "https://h.example:8443?"))


@pytest.mark.property
@given(st.dictionaries(st.text(max_size=8), st.integers(), max_size=3), st.sampled_from(["v1", "v1beta1"]))
def test_a_body_is_the_document_with_a_uid_in_front(document, version):
    """One JSON text, ended by a line end; the members of the document follow in their order."""
    content = json.dumps(document, separators=(",", ":")).encode()
    body = review_body(content, "the-uid", version)
    assert body.endswith(b"}}\n")
    review = json.loads(body)
    assert list(review) == ["kind", "apiVersion", "request"]
    assert review["apiVersion"] == f"admission.k8s.io/{version}"
    assert next(iter(review["request"].items())) == ("uid", document.get("uid", "the-uid"))
    assert review["request"] == {"uid": "the-uid"} | document


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("application/json", "application/json"),
        (" Text/PLAIN ; charset=utf-8", "text/plain"),
        ('a/b; c="d;e\\"f"; g=h;', "a/b"),
        ("form-data", "form-data"),
    ],
)
def test_a_media_type_is_parsed_as_go_parses_it(value, expected):
    """Type and subtype, in lower case; parameters only have to be some."""
    assert media_type(value) == expected


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (";;;bad", "mime: no media type"),
        ("  ", "mime: no media type"),
        ("a/", "mime: expected token after slash"),
        ("a/b c", "mime: unexpected content after media subtype"),
        ("a b", "mime: expected slash after first token"),
        ("a/b; c", "mime: invalid media parameter"),
        ("a/b; c=d; C=e", "mime: duplicate parameter name"),
    ],
)
def test_an_invalid_media_type_has_gos_error(value, said):
    """In the words of its mime package."""
    with pytest.raises(MediaTypeError, match=f"^{said}$"):
        media_type(value)


@pytest.mark.property
@given(st.text(max_size=60))
def test_a_media_type_is_parsed_or_refused(value):
    """And never anything else."""
    try:
        assert media_type(value)
    except MediaTypeError as error:
        assert str(error).startswith("mime: ")  # noqa: PT017 - either is right
