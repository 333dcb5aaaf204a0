"""What a user of kube-apiserver sees of the gateway's decisions."""

import pytest

from tests.e2e.api_server import JANE
from tests.e2e.client import MERGE
from tests.e2e.objects import config_map, pod
from tests.e2e.policies import CONFIG_MAPS, ENTRY, default_labels, denies, judge, note


async def test_an_allowed_object_is_stored(cluster):
    """A policy that is called and allows leaves no trace but in the audit log."""
    await cluster.enforce(validating=[judge(annotate=["operation"])])
    reply = await cluster.create(pod(), user=JANE)
    assert (reply.code, reply.warnings) == (201, [])
    assert cluster.audited(reply) == {f"{ENTRY}/judge.test.example.com_operation": '"CREATE"'}


async def test_a_denial_has_the_status_that_the_policy_gives(cluster):
    """Code, reason, message and causes arrive; kube-apiserver puts its sentence in front."""
    causes = [{"field": "spec.containers", "message": "none of them is nice"}]
    await cluster.enforce(validating=[denies("be nice", code=422, reason="Invalid", causes=causes)])
    reply = await cluster.create(pod(), user=JANE)
    assert reply.code == reply.body["code"] == 422
    assert (reply.body["status"], reply.body["reason"]) == ("Failure", "Invalid")
    assert reply.message == f'admission webhook "{ENTRY}" denied the request: be nice'
    own = {"reason": "FieldValueInvalid", "field": "spec.containers", "message": "none of them is nice"}
    assert reply.body["details"]["causes"] == [own, {"reason": "DENIED", "message": "be nice"}]


async def test_a_denial_has_the_lines_of_all_policies(cluster):
    """Two policies that deny are one message of kubectl's."""
    await cluster.enforce(validating=[denies("be nice", name="judge"), denies("be small", name="other")])
    reply = await cluster.create(pod(), user=JANE)
    lines = "judge.test.example.com: be nice\nother.test.example.com: be small"
    assert (reply.code, reply.body["reason"]) == (403, "Forbidden")
    assert reply.message == f'admission webhook "{ENTRY}" denied the request: {lines}'


async def test_a_denied_object_is_not_stored(cluster):
    """What the mutating policies did to it is gone as well."""
    labels = default_labels({"team": "a"})
    await cluster.enforce(mutating=[labels], validating=[denies("no")])
    assert (await cluster.create(pod())).code == 403
    assert (await cluster.client.get(cluster.own(pod()))).code == 404


async def test_the_changes_of_two_policies_are_stored_as_one(cluster):
    """The second policy sees what the first has written, and kube-apiserver calls both at once."""
    labels = default_labels({"team": "a"})
    await cluster.enforce(mutating=[labels, note("team", pointer="/metadata/labels/team")])
    reply = await cluster.create(pod(), user=JANE)
    assert reply.code == 201, reply
    stored = await cluster.get(pod())
    assert (stored["metadata"]["labels"], stored["metadata"]["annotations"]) == ({"team": "a"}, {"team": '"a"'})
    called = {key for key in cluster.audited(reply) if key.startswith("mutation.webhook")}
    assert called == {"mutation.webhook.admission.k8s.io/round_0_index_0"}


async def test_an_update_is_changed_too(cluster):
    """The patch of a client and those of policies are stored together."""
    await cluster.enforce(mutating=[default_labels({"team": "a"}, rules=CONFIG_MAPS)])
    assert (await cluster.create(config_map(labels={"team": "b"}))).code == 201
    change = {"metadata": {"labels": {"team": None}}, "data": {"key": "<&>\u2028é😀"}}
    reply = await cluster.send("PATCH", config_map(), change, media=MERGE, user=JANE)
    assert (reply.code, reply.body["metadata"]["labels"], reply.body["data"]) == (200, {"team": "a"}, change["data"])


async def test_warnings_are_shown(cluster):
    """Each is a Warning header, with an allow and with a denial, of both phases."""
    warned = note("n", text="x", warnings=['the "first"'])
    await cluster.enforce(mutating=[warned], validating=[denies("no", warnings=["the second: é"])])
    assert (await cluster.create(pod(), user=JANE)).warnings == [r"the \"first\"", "the second: é"]


async def test_what_a_policy_changed_is_in_the_audit_log(cluster):
    """The gateway's annotation has the places, kube-apiserver's own the patch."""
    await cluster.enforce(mutating=[default_labels({"team": "a"})])
    found = cluster.audited(await cluster.create(pod()))
    key = "default-labels.test.example.com"
    assert found[f"chain.{key}/{key}_changed"] == "add /metadata/labels"
    patch = found["patch.webhook.admission.k8s.io/round_0_index_0"]
    assert '"patch":[{"op":"add","path":"/metadata/labels","value":{"team":"a"}}]' in patch


@pytest.mark.parametrize("side_effects", ["None", "NoneOnDryRun"])
async def test_a_dry_run_is_decided_and_not_stored(cluster, side_effects):
    """A policy is called in a dry run and sees that it is one, also if it has side effects otherwise."""
    await cluster.enforce(validating=[judge(annotate=["dryRun"], sideEffects=side_effects)])
    reply = await cluster.create(pod(), dryRun="All")
    assert reply.code == 201
    assert cluster.audited(reply) == {f"{ENTRY}/judge.test.example.com_dryRun": "true"}
    assert (await cluster.client.get(cluster.own(pod()))).code == 404


async def test_a_policy_under_mode_warn_refuses_nothing(cluster):
    """Its denial is a warning to the user, and in the audit log."""
    await cluster.enforce(validating=[denies("be nice", mode="warn")])
    reply = await cluster.create(pod(), user=JANE)
    assert (reply.code, reply.warnings) == (201, ["judge.test.example.com: be nice (mode warn: not enforced)"])
    assert cluster.audited(reply) == {f"{ENTRY}/judge.test.example.com_would-deny": "be nice"}
