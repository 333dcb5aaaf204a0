"""Every recorded case of Kubernetes' reference webhook, through the gateway to the real agnhost over TLS.

Each route is a webhook in native configurations, on a path of its own, once for each version of AdmissionReview that it
speaks: a case recorded in v1beta1 is called in v1beta1. Once they name agnhost's Service, which ``--resolve`` leads to
the process, and once its address.
"""

import json

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
    route_of,
)
from tests.integration.client import Client, post
from tests.webhooks.native import SERVICE_HOST, SERVICE_PORT, by_service, by_url, configuration, text, webhook

pytestmark = pytest.mark.workers

CALLED_DIRECTLY = {
    124: "a content type with a charset: the gateway sends application/json, as kube-apiserver does",
    125: "a body that is not JSON: the gateway answers HTTP 400 to its client, and calls no worker",
    126: "an empty body: likewise",
    127: "a body that is no AdmissionReview: likewise",
    130: "a request without a resource: no rule matches it, so no worker is called",
    131: "a review without a request: the gateway answers HTTP 400",
    132: "a version of AdmissionReview that there is not: likewise",
}
"""Cases about agnhost's own HTTP that no gateway would send it: agnhost is called without one."""

CALLED = [number for number in CASES if number not in CALLED_DIRECTLY]

VERSIONS = {"v1": ["v1", "v1beta1"], "v1beta1": ["v1beta1", "v1"]}

IMAGE_PORT = SERVICE_PORT + 1
"""Of the same Service: the agnhost that has ``--sidecar-image``."""


def _name(policy, version):
    return f"{policy}.{version}.agnhost.test"


def _native(policies, kind, client, authority):
    every = [
        webhook(_name(policy, version), client(policy), authority, admissionReviewVersions=versions)
        for policy in policies
        for version, versions in VERSIONS.items()
    ]
    return configuration(kind, "agnhost", *every)


def _post(policy, version, body):
    return post(body, f"/{phase_of(policy)}/{_name(policy, version)}?timeout=10s")


def _requests():
    found = {n: _post(called_of(CASES[n]), CASES[n]["reviewVersion"], body_of(CASES[n])) for n in CALLED}
    return found | {name: _post(name, "v1", foreign(name)) for name in (*FOREIGN, "with-image")}


@pytest.fixture(scope="module")
def processes(agnhost):
    """agnhost without and with ``--sidecar-image``."""
    return agnhost(), agnhost("--sidecar-image", IMAGE)


@pytest.fixture(scope="module", params=["service", "url"])
def answers(request, processes, authority, serving, trust, tmp_path_factory):
    """The answers to all cases, by their number, and to foreign resources, by the policy's name."""
    plain, with_image = (process.port for process in processes)
    named = request.param == "service"

    def client(policy):
        is_other = policy == "with-image"
        if named:
            return by_service(route_of(policy), IMAGE_PORT if is_other else SERVICE_PORT)
        return by_url(route_of(policy), with_image if is_other else plain)

    path = tmp_path_factory.mktemp("native") / "webhooks.yaml"
    mutating = _native((*MUTATING, "with-image"), "Mutating", client, authority)
    path.write_text(text(mutating, _native(VALIDATING, "Validating", client, authority)))
    leads = {SERVICE_PORT: plain, IMAGE_PORT: with_image}
    resolve = [f"--resolve={SERVICE_HOST}:{port}=127.0.0.1:{real}" for port, real in leads.items()]
    process = serving("--policies", path, *(resolve if named else ())).ready()
    requests = _requests()
    with Client(process.port, trust) as connection:
        found = {key: connection.send(content) for key, content in requests.items()}
    process.stop()
    assert process.internal_errors() == []
    return found


def test_every_case_is_called():
    """All 69 of them: through the gateway, or, listed with the reason, directly."""
    assert len(CASES) == 69
    assert len(CALLED) == 69 - len(CALLED_DIRECTLY)
    assert {CASES[number]["reviewVersion"] for number in CALLED} == set(VERSIONS)


@pytest.mark.parametrize("number", CALLED, ids=lambda number: f"{number}{CASES[number]['route']}")
def test_a_case_has_the_recorded_answer(answers, number):
    """Allowed or not, with which status, and what becomes of the object."""
    assert_as_recorded(CASES[number], answers[number])


@pytest.mark.parametrize("name", [*FOREIGN, "with-image"])
def test_where_agnhost_crashes_the_webhook_fails(answers, name):
    """A connection that agnhost drops is a failure, under the failurePolicy, and no verdict."""
    assert answers[name].fails_with("WORKER_UNAVAILABLE")


@pytest.mark.parametrize("number", CALLED_DIRECTLY)
def test_agnhosts_own_http_is_as_recorded(processes, number):
    """What agnhost answers to what no gateway sends it."""
    case = CASES[number]
    sent, expected = case["request"], case["expected"]
    called = ("POST", case["route"], sent["bodyText"].encode(), {"Content-Type": sent["contentType"]})
    if "panic" in expected:
        with pytest.raises(ConnectionError):
            processes[0].call(*called)
        return
    status, headers, body = processes[0].call(*called)
    assert (status, headers.get("Content-Type", "")) == (expected["httpStatus"], expected["contentType"])
    if "body" in expected:
        assert json.loads(body) == expected["body"]
    else:
        assert body.decode() == expected["bodyText"]
