"""docs/migrate/shell-operator.md: real hooks, a real gateway, each step forth and back."""

import base64

import pytest
import yaml

from tests.docs.pages import named
from tests.migrate.admission import decoded
from tests.migrate.objects import service
from tests.migrate.operator import operator
from tests.migrate.walk import Walk
from tests.migrate.witness import Witness, watching

pytestmark = [pytest.mark.workers, pytest.mark.timeout(600)]  # a whole page, on a machine that has much to do

PAGE = "docs/migrate/shell-operator.md"

HEADINGS = (
    "1. Back up the registration",
    "2. Run the hooks offline",
    "3. Serve them",
    "4. Switch the Service",
    "5. The gateway's own registration",
    "6. Hooks as a worker",
)

NAMESPACE = "shell-operator"
SERVICE = "shell-operator-validating-svc"
DENIED = 'admission webhook "team-label.example.com" denied the request: label "team" is required'


def _registered(kind, bundle, **webhook):
    """The object that shell-operator registers."""
    name = webhook["name"]
    path = f"/hooks/{name.replace('.', '-')}"
    client = {"service": {"namespace": NAMESPACE, "name": SERVICE, "path": path, "port": 443}, "caBundle": bundle}
    shared = {"clientConfig": client, "failurePolicy": "Fail", "sideEffects": "None", "timeoutSeconds": 10}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{kind}WebhookConfiguration",
        "metadata": {"name": "shell-operator-hooks-hooks"},
        "webhooks": [webhook | shared | {"admissionReviewVersions": ["v1", "v1beta1"]}],
    }


def _pods(*operations):
    return [{"operations": list(operations), "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}]


@pytest.fixture
def walk(authority, folder):
    """shell-operator in the cluster, and an operator who follows the page."""
    walk = Walk(PAGE, folder, {}, pods=(NAMESPACE, "admission-gateway"))
    certificates = folder / "certificates"
    certificates.mkdir()
    (certificates / "ca.crt").write_bytes(authority.pem)
    pair = authority.issue(f"{SERVICE}.{NAMESPACE}.svc").write(certificates)
    for name in ("hooks/team-label.py", "hooks/tier.sh"):
        walk.write(name, named(PAGE, name))
        (folder / name).chmod(0o755)
    bundle = base64.b64encode(authority.pem).decode()
    selector = {"matchLabels": {"app": "shop"}}
    mutating = {"name": "tier.example.com", "rules": _pods("CREATE"), "objectSelector": selector}
    walk.cluster.put(_registered("Mutating", bundle, **mutating))
    walk.cluster.put(_registered("Validating", bundle, name="team-label.example.com", rules=_pods("CREATE", "UPDATE")))
    walk.cluster.put(service(NAMESPACE, SERVICE, app="shell-operator", port=443))
    hooks = {
        "team-label-example-com": (folder / "hooks/team-label.py", "team-label.example.com", "Validating"),
        "tier-example-com": (folder / "hooks/tier.sh", "tier.example.com", "Mutating"),
    }
    with operator(hooks, pair) as port:
        walk.cluster.run(NAMESPACE, "shell-operator", port)
        yield walk
        walk.stop()


def test_every_step_can_be_undone_and_the_hooks_are_always_in_force(walk):
    """All the way forth, and all the way back to what was; at every moment one pod passes and one does not."""
    fine, wrong = (yaml.safe_load(named(PAGE, name)) for name in ("pod.yaml", "bare.yaml"))
    stored = decoded(fine)
    stored["metadata"]["labels"]["tier"] = "backend"
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
