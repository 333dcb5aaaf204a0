"""What is refused before there is a review is counted, each time."""

import json

import pytest

from gateway.serving.refusals import Refusal
from gateway.telemetry.table import HTTP_REQUESTS_REJECTED, LIMIT_HITS, NOT_A_REVIEW
from tests.virtual.gateway import VirtualGateway, policies_yaml
from tests.virtual.test_whole_gateway import HEAD


@pytest.fixture
def gateway():
    with VirtualGateway(policies=policies_yaml("Validating", []), workers=lambda name: None) as made:
        yield made


def status(gateway, path, body):
    client = gateway.connect()
    client.send(HEAD.format(path, len(body)).encode() + body)
    gateway.loop.run_until_idle()
    client.hang_up()
    return bytes(client.received[9:12])


def test_a_review_that_is_too_deep_has_reached_a_limit(gateway):
    """Another body that is no review has not."""
    assert status(gateway, "/validate", b"[" * 300 + b"]" * 300) == b"400"
    assert status(gateway, "/validate", b"{}") == b"400"
    nested = b'{"a":' * 260 + b"1" + b"}" * 260
    review = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"object": 0}})
    assert status(gateway, "/validate", review.encode().replace(b"0}", nested + b"}")) == b"400"
    assert gateway.metrics.value(LIMIT_HITS, "depth") == 2
    assert gateway.metrics.value(HTTP_REQUESTS_REJECTED, NOT_A_REVIEW) == 3


def test_each_of_a_flood_is_counted(gateway):
    """Although most of them are not in the log."""
    for _ in range(100):
        assert status(gateway, "/nope", b"{}") == b"404"
        assert status(gateway, "/mutate", b"{}") == b"400"
    assert gateway.metrics.value(HTTP_REQUESTS_REJECTED, Refusal.PATH) == 100
    assert gateway.metrics.value(HTTP_REQUESTS_REJECTED, NOT_A_REVIEW) == 100
