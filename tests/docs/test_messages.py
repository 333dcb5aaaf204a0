"""What docs/denied.md shows of messages is what the gateway says."""

from gateway.engine.verdicts import Failure
from gateway.policies.model import OnConflict
from gateway.reasons import Reason
from gateway.scopes.inputs import Inputs
from gateway.scopes.pointer_set import PointerSet
from gateway.scopes.writes import Writes
from tests.docs.pages import blocks, pages
from tests.world import decide, label, patch, policy, request

SHOWN = [block.text for block in blocks("text", pages_of="docs/denied.md")]


def reported(text):
    """The texts of the page that begin so."""
    return [each for each in SHOWN if each.startswith(text)]


def test_a_change_outside_of_the_scope_is_reported_as_shown():
    """The message under WRITE_SCOPE is that of a policy that may write labels and chooses a ServiceAccount."""
    writes = Writes(granted=PointerSet([("metadata", "labels")]))
    change = patch({"op": "add", "path": "/spec", "value": {"serviceAccountName": "root"}})
    pod = {"metadata": {"name": "p"}, "spec": {"serviceAccountName": "default"}}
    decision, _ = decide([policy("a", writes=writes)], {"a": change}, on=request(pod))
    (failure,) = [call.answer for call in decision.calls]
    assert failure.reason is Reason.WRITE_SCOPE
    assert reported("the policy may not change") == [f"{failure.message}\n"]


def test_what_was_hidden_is_reported_as_shown():
    """The sentence under INVALID_PATCH is the gateway's own, whatever the place."""
    section = pages()["docs/denied.md"].text.split("\n### INVALID_PATCH\n")[1].split("\n### ")[0]
    inputs = Inputs(places=PointerSet([("object", "spec", "template", "metadata")]))
    change = patch({"op": "remove", "path": "/spec/template"})
    obj = {"metadata": {}, "spec": {"template": {"metadata": {}, "spec": {}}}}
    decision, _ = decide([policy("a", inputs=inputs)], {"a": change}, on=request(obj))
    (failure,) = [call.answer for call in decision.calls]
    assert failure.reason is Reason.INVALID_PATCH
    assert failure.message.split("/spec/template was not shown")[1].strip() in section.replace("`", "")


def test_a_stale_verdict_is_warned_of_as_shown():
    """Which policy, how old, why."""
    failure = Failure(reason=Reason.WORKER_UNAVAILABLE, message="away")
    decision, _ = decide([policy("a")], {"a": failure}, fallbacks={"a": (label("one"), 423.0)})
    (warning,) = decision.response.warnings
    assert reported("Warning: required-labels.samples.example.com: could not judge") == [
        f"Warning: {warning.replace('a.test.', 'required-labels.samples.')}\n"
    ]


def test_a_conflict_is_warned_of_as_shown():
    """Both policies, the field, the rule."""
    policies = [
        policy(name, index=index, on_conflict=OnConflict.WARN) for index, name in enumerate(("team-a", "team-b"))
    ]
    decision, _ = decide(policies, {"team-a": label("tier", "one"), "team-b": label("tier", "two")})
    (warning,) = decision.response.warnings
    assert reported("Warning: team-b") == [f"Warning: {warning.replace('.test.', '.')}\n"]
