"""docs/migrate/controller-runtime.md: a real manager, a real gateway, a real worker in Go, each step forth and back."""

import base64
import json
from pathlib import Path

import pytest
import yaml

from tests.docs.pages import BUNDLE, blocks, named
from tests.integration.client import Client, post
from tests.migrate.admission import decoded
from tests.migrate.manager_process import built, manager
from tests.migrate.objects import GATEWAY, service
from tests.migrate.reviews import reviews
from tests.migrate.walk import Walk
from tests.migrate.witness import Witness, watching

pytestmark = [pytest.mark.workers, pytest.mark.timeout(600)]

PAGE = "docs/migrate/controller-runtime.md"

HEADINGS = (
    "1. Copy what is registered",
    "2. Serve it",
    "3. Switch",
    "4. Name the webhooks as workers",
    "5. The handlers in a worker",
    "6. The worker in their place",
)

SERVICE_HOST = "webhook-service.manager.svc"
DENIED = 'Deployment.apps "large" is invalid: spec.replicas: Invalid value: 11: must be at most 10'


@pytest.fixture
def walk(authority, folder):
    """The manager in the cluster, and an operator who follows the page."""
    files = folder / "manager"
    files.mkdir()
    with manager(files, authority.issue(SERVICE_HOST).write(folder)) as port:
        bundle = base64.b64encode(authority.pem).decode()
        said = {
            BUNDLE: bundle,
            "127.0.0.1:9444": f"127.0.0.1:{port}",
            "go build -o policies/deployments ./worker": f"cp {built('worker')} policies/deployments",
        }
        walk = Walk(PAGE, folder, said)
        walk.cluster.put(GATEWAY)
        walk.cluster.put(service("manager", "webhook-service", app="manager", port=443))
        walk.cluster.run("manager", "manager", port)
        for each in yaml.safe_load_all(walk.here(named(PAGE, "today.yaml"))):
            walk.cluster.put(each)
        yield walk
        walk.stop()


@pytest.mark.parametrize("block", blocks("go", pages_of=PAGE), ids=str)
def test_the_code_of_the_page_is_of_what_is_built(block):
    """Each piece of code on the page is one of the programs that run here."""
    folder = Path(__file__).parent / "controller-runtime"
    assert any(block.text in (folder / name / "main.go").read_text() for name in ("webhook", "worker"))


def test_every_step_can_be_undone_and_the_handlers_are_always_in_force(walk):
    """All the way forth, and all the way back; at every moment one Deployment passes and one does not."""
    fine, wrong = (yaml.safe_load(named(PAGE, name)) for name in ("small.yaml", "large.yaml"))
    stored = decoded(fine)
    stored["metadata"]["annotations"] = {"example.com/owner": "nobody"}
    witness = Witness(walk.cluster, fine=(fine, stored), wrong=(wrong, DENIED))
    today = walk.cluster.registered()
    with watching(witness):
        for heading in HEADINGS:
            walk.do(heading)
        for heading in reversed(HEADINGS):
            walk.undo(heading)
    witness.look()
    assert walk.cluster.registered() == today
    assert witness.violations == []
    assert witness.seen > len(HEADINGS)


def _decided(walk):
    """What kube-apiserver gets for each review, in both phases."""
    with Client(walk.gateway.port, walk.gateway.trust) as client:
        paths = ("/mutate?timeout=30s", "/validate?timeout=30s")
        answers = [client.send(post(body, path)) for body in reviews() for path in paths]
    assert {answer.status for answer in answers} == {200}
    return [json.loads(answer.body)["response"] for answer in answers]


def _without_own_cause(response):
    """A response without the cause that the gateway adds: to each refusal of a policy, to a webhook's among several."""
    status = dict(response.get("status", {}))
    details = dict(status.pop("details", {}))
    causes = [cause for cause in details.pop("causes", ()) if cause["reason"] != "DENIED"]
    details |= {"causes": causes} if causes else {}
    return response | {"status": status | {"details": details}}


def test_the_worker_decides_as_the_manager_did(walk):
    """Status with its causes, patch, warnings, audit annotations: the same before the rewrite and after it, but for the
    cause that the gateway adds to a policy's refusal.
    """
    for heading in HEADINGS[:4]:
        walk.do(heading)
    before = _decided(walk)
    for heading in HEADINGS[4:]:
        walk.do(heading)
    after = _decided(walk)
    assert [*map(_without_own_cause, after)] == [*map(_without_own_cause, before)]
    assert {each.get("status", {}).get("code") for each in before} == {None, 403, 422}
    assert any("patch" in each for each in before)
    assert any("warnings" in each for each in before)
