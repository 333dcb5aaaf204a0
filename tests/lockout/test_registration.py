"""What registering makes impossible, why, and what helps."""

import pytest

from gateway.lockout.registration import ClusterState
from tests.lockout.registrations import examined, found, policy, rule

LEASES = rule("leases", group="coordination.k8s.io")
PODS = rule("pods", operations=["CREATE"])
SYSTEM = {"excluded_namespaces": ("kube-system", "kube-node-lease")}
ELSEWHERE = {"targets": {"far": "dns:///far.policies.svc:50051"}}

OTHERS = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingWebhookConfiguration",
    "metadata": {"name": "others"},
}


def others(*rules, **fields):
    """A webhook configuration that is not the gateway's."""
    webhook = {
        "name": "other.example.com",
        "clientConfig": {"service": {"namespace": "o", "name": "o"}},
        "rules": list(rules),
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 10,
    }
    return OTHERS | {"webhooks": [webhook | fields]}


def blocked(examination):
    return {str(each) for each in examination.blocked}


def test_what_a_narrow_policy_leaves_alone_is_promised():
    """A policy about one kind of its own blocks nothing that a cluster needs."""
    examination = examined(policy("p", rule("things", group="example.com")))
    assert (examination.findings, examination.blocked) == ((), ())


def test_pods_of_dns_and_of_the_network_are_not_blocked_unnoticed():
    """The finding names the webhook, its rule and the policy behind it, and the flag that helps, helps."""
    examination = examined(policy("p", rule("things", group="example.com"), PODS))
    (finding,) = examination.findings
    assert (finding.severity, finding.code, finding.path) == ("refuse", "lockout", "webhooks[0].rules[1]")
    assert finding.webhook == "ValidatingWebhookConfiguration/admission-gateway/group.p.example.com"
    assert finding.policies == ("team/p.example.com",)
    assert {each.what for each in finding.requests} == {"cluster DNS", "network plugin (CNI)"}
    assert finding.remedy.flag == "--exclude-namespace kube-system"
    assert examined(policy("p", PODS), registrar=SYSTEM).findings == ()


@pytest.mark.parametrize(
    ("namespace", "what"), [("kube-system", "leader election"), ("kube-node-lease", "node heartbeats")]
)
def test_leases_are_not_blocked_unnoticed(namespace, what):
    """Without them nodes, or the control plane itself, stop."""
    selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    examination = examined(policy("p", LEASES, namespaceSelector=selector))
    assert ("refuse", "lockout") in found(examination)
    assert {each.what for each in examination.blocked} == {what}


@pytest.mark.parametrize("resource", ["nodes", "nodes/status", "*", "*/*"])
def test_nodes_are_not_blocked_unnoticed(resource):
    """They are in no namespace: what helps is another rule."""
    examination = examined(policy("p", rule(resource)))
    refused = [each for each in examination.findings if each.severity == "refuse" and "nodes" in each.message]
    assert refused
    assert all(each.remedy.patch for each in refused)


def test_what_fails_open_blocks_nothing():
    """A gateway that is away is passed over."""
    assert examined(policy("p", failurePolicy="Ignore", timeoutSeconds=0.5)).blocked == ()


def test_what_enforces_nothing_blocks_nothing():
    """Neither does a trial of a policy under Fail."""
    assert examined(policy("p", mode="warn", timeoutSeconds=0.5)).blocked == ()


def test_the_gateways_own_pods_are_never_blocked():
    """Its namespace is excluded from what is registered, whatever the rules are."""
    assert "gateway" not in {each.what for each in examined(policy("p")).blocked}


@pytest.mark.parametrize("what", ["authentication and authorization", "the gateway's own kinds"])
def test_users_and_the_gateways_own_policies_are_never_blocked(what):
    """What a rule for everything matches, and must not be blocked."""
    assert what not in {each.what for each in examined(policy("p")).blocked}


def test_events_are_found_in_both_of_their_groups():
    """A webhook for one of them is called for the other, as kube-apiserver converts them."""
    examination = examined(policy("p", rule("events")))
    assert found(examination)[0] == ("warn", "lockout")
    assert blocked(examination) == {"CREATE events", "CREATE events.events.k8s.io (events)"}


def test_a_label_that_is_not_known_is_no_promise():
    """A selector for other labels may select kube-system; with its labels it is decided."""
    production = policy("p", PODS, namespaceSelector={"matchLabels": {"env": "prod"}})
    assert found(examined(production)) == [("warn", "possible-lockout")]
    for labels, expected in (({}, []), ({"env": "prod"}, [("refuse", "lockout")])):
        assert found(examined(production, cluster=ClusterState(namespaces={"kube-system": labels}))) == expected


def test_a_condition_that_excepts_nodes_is_evaluated():
    """As kube-apiserver would, for the user who sends the request."""
    expression = "!('system:nodes' in request.userInfo.groups)"
    conditions = [{"name": "not-nodes", "expression": expression}]
    examination = examined(policy("p", rule("nodes/status"), isolate=True, matchConditions=conditions))
    assert examination.blocked == ()


def test_a_condition_that_only_the_cluster_can_evaluate_is_no_promise():
    """The result of an authorizer is not guessed."""
    conditions = [{"name": "may", "expression": "authorizer.group('').resource('pods').check('get').allowed()"}]
    examination = examined(policy("p", PODS, isolate=True, matchConditions=conditions))
    assert found(examination) == [("warn", "possible-lockout")]


def test_another_version_of_a_kind_is_no_promise():
    """The webhook is called if the API server serves that version."""
    examination = examined(policy("p", rule("leases", group="coordination.k8s.io", version="v1beta1")))
    assert {code for _, code in found(examination)} == {"possible-lockout"}


def test_a_worker_that_judges_its_own_pods_never_starts():
    """After a cold start it waits for itself."""
    examination = examined(policy("p", PODS, worker="far"), **ELSEWHERE, registrar=SYSTEM)
    assert found(examination) == [("refuse", "dependency-cycle"), ("warn", "lockout")]
    cycle = examination.findings[0]
    assert (cycle.policies, cycle.remedy.flag) == (("team/p.example.com",), "--exclude-namespace policies")
    closed = {"excluded_namespaces": (*SYSTEM["excluded_namespaces"], "policies")}
    assert found(examined(policy("p", PODS, worker="far"), **ELSEWHERE, registrar=closed)) == []


def test_workers_that_judge_one_another_never_start():
    """A cycle of two; a third that only waits for a worker outside of the cluster is none."""
    targets = {each: f"dns:///{each}.{each}-workers.svc:50051" for each in "abc"}

    def judging(worker, of):
        selector = {"matchLabels": {"kubernetes.io/metadata.name": f"{of}-workers"}}
        return policy(f"{worker}-judges-{of}", PODS, worker=worker, namespaceSelector=selector)

    examination = examined(
        judging("a", "b"),
        judging("b", "a"),
        judging("w", "c"),
        policy("c", LEASES, worker="c", failurePolicy="Ignore", timeoutSeconds=0.5),
        targets=targets,
    )
    cycles = [each for each in examination.findings if each.code == "dependency-cycle"]
    assert [each.remedy.flag for each in cycles] == ["--exclude-namespace a-workers", "--exclude-namespace b-workers"]


def test_redis_that_a_queue_needs_must_start_before_it():
    """Its Pods are among what must be able to start."""
    examination = examined(policy("p", PODS), redis_hosts=("redis.cache.svc.cluster.local",), registrar=SYSTEM)
    assert {each.what for each in examination.blocked} == {"Redis"}


def test_webhooks_that_fail_open_are_too_slow_for_a_lease():
    """Leader election waits 5 s; a webhook that swallows connections takes its whole timeout."""
    examination = examined(policy("p", LEASES, failurePolicy="Ignore", timeoutSeconds=10))
    (election, nodes) = examination.findings
    assert {(each.severity, each.code) for each in (election, nodes)} == {("refuse", "slow")}
    assert "11 s, and the sender waits 5 s" in election.message
    assert examined(policy("p", LEASES, failurePolicy="Ignore", timeoutSeconds=3)).findings == ()


def test_all_webhooks_of_a_request_take_less_than_the_api_server_waits():
    """Those of others count: mutating ones one after another, and again under IfNeeded."""
    slow = policy("p", rule("things", group="example.com"), timeoutSeconds=29)
    assert examined(slow).findings == ()
    more = others(rule("*", group="*", version="*"), failurePolicy="Ignore")
    mutating = more | {"kind": "MutatingWebhookConfiguration"}
    (finding,) = examined(slow, cluster=ClusterState(others=(mutating,))).findings
    assert (finding.severity, finding.code) == ("warn", "slow")
    assert "CREATE things.example.com may take 40 s" in finding.message
    assert "others/other.example.com" in finding.message


def test_a_webhook_of_others_that_matches_the_gateways_pods_is_reported():
    """While it is away, the gateway does not start."""
    state = ClusterState(others=(others(PODS),))
    (finding,) = examined(policy("p", rule("things", group="example.com")), cluster=state).findings
    assert (finding.severity, finding.code) == ("warn", "other-webhook")
    assert finding.webhook == "ValidatingWebhookConfiguration/others/other.example.com"


@pytest.mark.parametrize("broken", [{}, {"webhooks": 5}, {"webhooks": [{}]}, {"webhooks": [{"rules": "x"}]}])
def test_a_webhook_of_others_that_cannot_be_read_stops_nothing(broken):
    """Whatever an API server of another release has."""
    state = ClusterState(others=(OTHERS | broken,))
    codes = {code for _, code in found(examined(policy("p", rule("things", group="example.com")), cluster=state))}
    assert codes <= {"other-webhook"}


def test_wildcards_under_fail_are_reported_once():
    """They also match what does not exist yet; where they block something that matters, that says it."""
    selector = {"matchLabels": {"kubernetes.io/metadata.name": "team-a"}}
    examination = examined(policy("p", rule("*", group="example.com", scope="Namespaced"), namespaceSelector=selector))
    assert found(examination) == [("warn", "wide-rules")]
    assert "resources and operations" in examination.findings[0].message
