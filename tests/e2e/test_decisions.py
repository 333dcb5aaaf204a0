"""What a user of kube-apiserver sees of the gateway's decisions."""

from tests.e2e.api_server import JANE
from tests.e2e.cluster import pod
from tests.integration.running import policy


def judge(name="judge", **settings):
    return policy(name, worker="told", policy="judge", settings=settings)


async def test_an_allowed_object_is_stored(cluster):
    """A policy that is called and allows leaves no trace but in the audit log."""
    await cluster.enforce(validating=[judge(tell=["operation"])])
    reply = await cluster.create(pod(), user=JANE)
    assert (reply.code, reply.warnings) == (201, [])
    assert cluster.audited(reply) == {"group.judge.test.example.com/judge.test.example.com_operation": '"CREATE"'}


async def test_a_denial_has_the_status_that_the_policy_gives(cluster):
    """Code, reason, message and causes arrive; kube-apiserver puts its sentence in front."""
    causes = [{"field": "spec.containers", "message": "none of them is nice"}]
    denial = {"message": "be nice", "code": 422, "reason": "Invalid", "causes": causes}
    await cluster.enforce(validating=[judge(deny=denial)])
    reply = await cluster.create(pod(), user=JANE)
    assert reply.code == reply.body["code"] == 422
    assert (reply.body["status"], reply.body["reason"]) == ("Failure", "Invalid")
    assert reply.message == 'admission webhook "group.judge.test.example.com" denied the request: be nice'
    own = {"reason": "FieldValueInvalid", "field": "spec.containers", "message": "none of them is nice"}
    assert reply.body["details"]["causes"] == [own, {"reason": "DENIED", "message": "be nice"}]


async def test_the_changes_of_two_policies_are_stored_as_one(cluster):
    """The second policy sees what the first has written, and kube-apiserver calls both at once."""
    labels = policy("default-labels", worker="samples", settings={"labels": {"team": "a"}})
    noting = policy("note", worker="told", settings={"key": "team", "pointer": "/metadata/labels/team"})
    await cluster.enforce(mutating=[labels, noting])
    reply = await cluster.create(pod(), user=JANE)
    assert reply.code == 201, reply
    stored = await cluster.get(pod())
    assert (stored["metadata"]["labels"], stored["metadata"]["annotations"]) == ({"team": "a"}, {"team": '"a"'})
    called = {key for key in cluster.audited(reply) if key.startswith("mutation.webhook")}
    assert called == {"mutation.webhook.admission.k8s.io/round_0_index_0"}
