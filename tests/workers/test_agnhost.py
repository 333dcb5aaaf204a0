"""The recorded answers of Kubernetes' reference webhook, agnhost, from the gateway with the agnhost worker behind it.

Each case goes through a real gateway on the path of one policy.
"""

import pytest

from tests.conformance.agnhost import (
    CASES,
    FOREIGN,
    IMAGE,
    MUTATING,
    VALIDATING,
    assert_as_recorded,
    body_of,
    called_of,
    foreign,
    phase_of,
)
from tests.integration.client import post
from tests.integration.running import policy
from tests.workers.commands import AGNHOST, command, languages
from tests.workers.running import EVERYTHING, Served, called

NOT_THE_WORKERS = {
    124: "a content type with a charset: agnhost sends no answer, the gateway reads it",
    125: "a body that is not JSON: HTTP 400 from both, with different text",
    126: "an empty body: HTTP 400 from both, with different text",
    127: "a body that is not an AdmissionReview: HTTP 400 from both, with different text",
    130: "a request without a resource, which kube-apiserver never sends: no rule matches it, so no worker is called",
    131: "a review without a request: agnhost crashes, the gateway answers HTTP 400",
    132: "an unknown version of AdmissionReview: HTTP 400 from both, with different text",
}
"""Cases of agnhost's HTTP server, which a worker does not have."""


def _policy(name, **fields):
    """A policy on its own path."""
    return policy(name, worker="judge", rules=EVERYTHING, isolate=True, **fields)


def _served(argv):
    with_image = _policy("with-image", policy="mutating-pods-sidecar", settings={"image": IMAGE})
    # The end-to-end tests wait for five seconds; here a short wait is enough.
    soon = _policy("always-allow-delay-5s", settings={"seconds": 0.05})
    return Served(
        argv=argv,
        mutating=[*map(_policy, MUTATING), with_image],
        validating=[soon, *(_policy(name) for name in VALIDATING if name != "always-allow-delay-5s")],
    )


def _post(name, body):
    return post(body, f"/{phase_of(name)}/{name}.test.example.com?timeout=10s")


JUDGED = [number for number in CASES if number not in NOT_THE_WORKERS]


@pytest.fixture(scope="module", params=languages(AGNHOST))
def answers(request, serving, trust, tmp_path_factory):
    """The answers to all cases, by their number, and to foreign resources, by the policy's name."""
    folder = tmp_path_factory.mktemp("agnhost")
    requests = {number: _post(called_of(CASES[number]), body_of(CASES[number])) for number in JUDGED}
    requests |= {name: _post(name, foreign(name)) for name in (*FOREIGN, "with-image")}
    found = called(serving, trust, folder, _served(command(AGNHOST, request.param)), requests.values())
    return dict(zip(requests, found, strict=True))


def test_every_case_is_there():
    """All 69 of them: those that a worker judges, and those that are listed with the reason why not."""
    assert len(CASES) == 69
    assert len(JUDGED) == 69 - len(NOT_THE_WORKERS)


@pytest.mark.parametrize("number", JUDGED, ids=lambda number: f"{number}{CASES[number]['route']}")
def test_a_case_has_agnhosts_answer(answers, number):
    """Allowed or not, with which status, and what becomes of the object."""
    assert_as_recorded(CASES[number], answers[number], of_policy=True)


@pytest.mark.parametrize("name", [*FOREIGN, "with-image"])
def test_where_agnhost_crashes_the_policy_fails(answers, name):
    """A resource that the handler does not know is a failure, under the failurePolicy, and no verdict."""
    assert answers[name].fails_with("WORKER_FAILURE")
