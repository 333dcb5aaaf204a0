"""What `render` prints makes kube-apiserver call the gateway when it should, and as often as it should."""

import json
import shutil
from pathlib import Path

import pytest

from tests.e2e.api_server import JANE
from tests.e2e.objects import namespace, pod
from tests.e2e.policies import denies, judge, note, rules
from tests.hooks.scripts import CONFIG, answering, bash_hook
from tests.integration.running import policy

EXAMPLES = Path(__file__).parents[2] / "examples/policies"

PROXY = {"container": {"name": "proxy", "image": "registry.example.com/proxy:1"}, "annotation": "example.com/proxy"}


async def namespaces(cluster):
    """As `kubectl get namespaces -o yaml` prints them."""
    found = (await cluster.client.send("GET", "/api/v1/namespaces")).body["items"]
    items = [{"apiVersion": "v1", "kind": "Namespace"} | each for each in found]
    return {"apiVersion": "v1", "kind": "List", "items": items}


async def test_a_policy_is_called_again_after_another_entry_changed_the_object(cluster):
    """Under IfNeeded it sees what came later, with the defaults that kube-apiserver has set meanwhile."""
    noting = note("containers", pointer="/spec/containers", reinvocationPolicy="IfNeeded")
    sidecar = policy("sidecar", worker="samples", settings=PROXY, isolate=True)
    await cluster.enforce(mutating=[noting, sidecar])
    reply = await cluster.create(pod())
    assert reply.code == 201, reply
    seen = json.loads(reply.body["metadata"]["annotations"]["containers"])
    assert [(each["name"], each["imagePullPolicy"]) for each in seen] == [("main", "Always"), ("proxy", "IfNotPresent")]
    called = [key.split("_")[-3::2] for key in cluster.audited(reply) if key.startswith("mutation.webhook")]
    # The index is that among the webhooks of all tests.
    first = min(index for _, index in called)
    assert sorted((number, int(index) - int(first)) for number, index in called) == [("0", 0), ("0", 1), ("1", 0)]


@pytest.mark.parametrize("isolate", [True, False])
async def test_a_condition_that_is_false_keeps_the_policy_out(cluster, isolate):
    """Whether kube-apiserver evaluates it, or the gateway."""
    conditions = [{"name": "mine", "expression": "object.metadata.name != 'p'"}]
    await cluster.enforce(validating=[denies("no", matchConditions=conditions, isolate=isolate)])
    assert [(await cluster.create(pod(name))).code for name in ("p", "q")] == [201, 403]


async def test_what_no_policy_of_an_entry_wants_is_not_sent(cluster):
    """kube-apiserver evaluates the conditions of all; who is called judges by its own; an error refuses."""

    def conditions(expression):
        return [{"name": "c", "expression": expression}]

    named = denies("by name", name="named", matchConditions=conditions("object.metadata.name == 'p'"))
    team = denies("by team", name="team", matchConditions=conditions("object.metadata.labels['team'] == 'a'"))
    gateway = await cluster.enforce(validating=[named, team])
    replies = [
        await cluster.create(pod(name, labels=labels))
        for name, labels in (("q", {"team": "b"}), ("q", {}), ("p", {}), ("q", {"team": "a"}))
    ]
    assert [reply.code for reply in replies] == [201, 403, 403, 403]
    _, error, by_name, by_team = [reply.body.get("message", "") for reply in replies]
    assert "no such key: labels" in error
    assert [[text in message for text in ("by name", "by team")] for message in (by_name, by_team)] == [
        [True, False],
        [False, True],
    ]
    called = {"phase": "validating", "entry": "group.named.test.example.com"}
    assert sum(gateway.metric("entry_reviews_total", **called, outcome=each) for each in ("allowed", "denied")) == 2


@pytest.mark.parametrize("isolate", [True, False])
async def test_a_condition_without_a_value_refuses_in_kubernetes_words(cluster, isolate):
    """The same sentence and code, whether kube-apiserver evaluates it, or the gateway."""
    expression = "object.metadata.labels.team == 'a'"
    conditions = [{"name": "team", "expression": expression}]
    await cluster.enforce(validating=[judge(matchConditions=conditions, isolate=isolate)])
    reply = await cluster.create(pod())
    words = f"pods \"p\" is forbidden: expression '{expression}' resulted in error: no such key: labels"
    assert (reply.code, reply.body["reason"]) == (403, "Forbidden")
    assert reply.message.endswith(words)


@pytest.mark.parametrize("alone", [True, False])
async def test_a_namespace_is_selected_by_its_labels(cluster, alone):
    """Whether kube-apiserver selects for the whole entry, or the gateway for each of its policies."""
    assert (await cluster.client.create(namespace(cluster.other, labels={"team": "a"}))).code == 201
    team = denies("no", namespaceSelector={"matchLabels": {"team": "a"}})
    others = [] if alone else [judge("other")]
    await cluster.enforce(validating=[team, *others], documents=[await namespaces(cluster)])
    in_team = pod(namespace=cluster.other)
    assert [(await cluster.create(obj)).code for obj in (pod(), in_team)] == [201, 403]


async def test_what_must_stay_possible_is_never_sent(cluster):
    """Where a policy denies everything, users can still be authenticated and authorized, and webhooks be removed."""
    await cluster.enforce(validating=[denies("no", rules=rules("*/*", group="*", version="*"))])
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "r"}}
    assert (await cluster.client.create(role)).code == 403
    reviews = {
        ("authentication", "TokenReview"): {"token": "x"},
        ("authorization", "SelfSubjectAccessReview"): {"resourceAttributes": {"verb": "get", "resource": "pods"}},
    }
    for (group, kind), spec in reviews.items():
        review = {"apiVersion": f"{group}.k8s.io/v1", "kind": kind, "metadata": {}, "spec": spec}
        assert (await cluster.client.create(review)).code == 201
    registered = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    assert (await cluster.client.send("DELETE", f"{registered}/{cluster.namespace}")).code == 200


async def test_hooks_of_shell_operator_are_called(cluster, tmp_path):
    """`serve` and `render` with a directory of hooks, which need no policies."""
    cluster.policies, cluster.hooks = EXAMPLES / "workers.yaml", tmp_path / "hooks"
    validating = {name: CONFIG[name] for name in ("configVersion", "kubernetesValidating")}
    bash_hook(cluster.hooks, answering({"allowed": False, "message": "not with me"}), config=validating)
    await cluster.register((await cluster.start()).port)
    reply = await cluster.create(pod(), user=JANE)
    message = 'admission webhook "judge.test.example.com" denied the request: not with me'
    assert (reply.code, reply.message) == (403, message)


async def test_the_examples_work_as_the_documentation_says(cluster, tmp_path):
    """docs/operate.md: the namespaces of the cluster in place of the examples' own, then `serve` and `render`."""
    directory = shutil.copytree(EXAMPLES, tmp_path / "examples")
    (directory / "namespaces.yaml").write_text(json.dumps(await namespaces(cluster)))
    cluster.policies = directory
    await cluster.register((await cluster.start()).port)
    reply = await cluster.create(pod(labels={"app": "x"}), user=JANE)
    assert (reply.code, reply.warnings) == (201, [])
    assert reply.body["metadata"]["labels"] == {"app": "x", "managed-by": "admission-gateway", "team": "unassigned"}
    main, proxy = reply.body["spec"]["containers"]
    assert (main["image"], proxy["name"]) == ("registry.example.com/mirror/library/nginx", "proxy")
    assert (
        main["resources"]
        == proxy["resources"]
        == {
            "requests": {"cpu": "100m", "memory": "128Mi"},
            "limits": {"cpu": "1", "memory": "512Mi"},
        }
    )
    privileged = pod("q")
    privileged["spec"]["containers"][0]["securityContext"] = {"privileged": True}
    reply = await cluster.create(privileged, user=JANE)
    assert reply.code == 403
    assert 'privileged containers are not allowed: spec.containers[0] ("main", image "' in reply.message
