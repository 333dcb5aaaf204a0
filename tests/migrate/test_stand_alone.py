"""docs/migrate/stand-alone-webhook.md: a real HTTPS webhook, a real gateway, each step forth and back."""

import base64
import time

import pytest
import yaml

from tests.docs.pages import BUNDLE, named
from tests.integration.process import WAIT_SECONDS
from tests.integration.running import POLL_SECONDS
from tests.migrate.admission import decoded
from tests.migrate.objects import GATEWAY, service
from tests.migrate.walk import Walk
from tests.migrate.witness import Witness, watching
from tests.webhooks.front import front

pytestmark = [pytest.mark.workers, pytest.mark.timeout(600)]  # a whole page, on a machine that has much to do

PAGE = "docs/migrate/stand-alone-webhook.md"

HEADINGS = (
    "1. Copy what is registered",
    "2. Call it through the gateway, offline",
    "3. Serve it",
    "4. Call both",
    "5. Switch",
    "6. One registration",
    "7. Inputs and cache",
    "8. A worker beside it",
    "9. The worker in its place",
)

ROUTES = {
    "/validate": ("required-labels", {"labels": {"team": ""}}),
    "/mutate": ("default-labels", {"labels": {"tier": "backend"}}),
}

DENIED = 'admission webhook "team-label.example.com" denied the request: label "team" is required'


@pytest.fixture
def webhook(authority, folder):
    """The port of the webhook of today."""
    certificates = folder / "webhook"
    certificates.mkdir()
    with front(ROUTES, authority.issue("labels.webhooks.svc").write(certificates)) as port:
        yield port


@pytest.fixture
def walk(authority, folder, webhook):
    """The cluster as it is today, and an operator who follows the page."""
    bundle = base64.b64encode(authority.pem).decode()
    walk = Walk(PAGE, folder, {BUNDLE: bundle, "127.0.0.1:9444": f"127.0.0.1:{webhook}"})
    walk.cluster.put(GATEWAY)
    walk.cluster.put(service("webhooks", "labels", app="labels", port=443))
    walk.cluster.run("webhooks", "labels", webhook)
    for each in yaml.safe_load_all(walk.here(named(PAGE, "today.yaml"))):
        walk.cluster.put(each)
    yield walk
    walk.stop()


def _stored(pod):
    found = decoded(pod)
    found["metadata"]["labels"]["tier"] = "backend"
    return found


def _assert_compared(gateway):
    """The worker answers, and the webhook that is its shadow now says the same; so it did the other way round."""
    about = {"phase": "validating", "policy": "team-labels/team-label.example.com"}
    assert gateway.metric("worker_connections", worker="labels") > 0
    # After an answer, while calls go on.
    ends = time.monotonic() + WAIT_SECONDS
    while not gateway.metric("shadow_comparisons_total", result="same", **about):
        assert time.monotonic() < ends, "nothing was compared"
        time.sleep(POLL_SECONDS)
    assert gateway.metric("shadow_comparisons_total", result="different", **about) == 0


def test_who_keeps_creating_objects_sees_that_nothing_is_in_force(walk):
    """Where nothing is registered, one pod is let through that is wrong, and the other is stored as it came."""
    fine, wrong = (yaml.safe_load(named(PAGE, name)) for name in ("pod.yaml", "bare.yaml"))
    for kind, name in walk.cluster.registered():
        walk.cluster.delete(kind, name)
    witness = Witness(walk.cluster, fine=(fine, _stored(fine)), wrong=(wrong, DENIED))
    witness.look()
    assert [violation.split(" {")[0] for violation in witness.violations] == ["stored", "let through"]


def test_every_step_can_be_undone_and_the_policy_is_always_in_force(walk):
    """All the way forth, and all the way back to what was; at every moment one pod passes and one does not."""
    fine, wrong = (yaml.safe_load(named(PAGE, name)) for name in ("pod.yaml", "bare.yaml"))
    witness = Witness(walk.cluster, fine=(fine, _stored(fine)), wrong=(wrong, DENIED))
    today = walk.cluster.registered()
    with watching(witness):
        for heading in HEADINGS:
            walk.do(heading)
        _assert_compared(walk.gateway)
        for heading in reversed(HEADINGS):
            walk.undo(heading)
    witness.look()
    assert walk.cluster.registered() == today
    assert witness.violations == []
    assert witness.seen > len(HEADINGS)
