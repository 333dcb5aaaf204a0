"""What is generated says what the source says, and nothing that the source says is missing."""

import json
import re

import pytest
from click.testing import CliRunner

from docs.generator import COMMAND, FOLDER, ROOT, drifted, pages
from docs.generator.contract import FILE
from gateway.cli.main import main
from gateway.engine.verdicts import Allow
from gateway.policies.model import FailurePolicy, OnConflict, Requirement, Selector, SideEffects
from gateway.reasons import Reason
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from tests.docs.pages import ROOT as PROJECT
from tests.docs.pages import named
from tests.docs.pages import pages as written
from tests.world import decide, label, policy, request

PROD = Selector(requirements=(Requirement(key="env", operator="In", values=("prod",)),))


def test_the_references_are_those_of_the_source():
    """After a change of a flag, limit, metric, reason code or the worker's contract: `make docs`."""
    stale = [str(path) for path in drifted()]
    assert not stale, f"run `{COMMAND}`: {', '.join(stale)} is not what the source says"


def test_there_is_no_other_reference():
    """All of docs/reference is generated, never edited by hand."""
    assert {path.name for path in (ROOT / FOLDER).iterdir()} == {path.name for path in pages()}


def test_every_field_of_the_contract_is_in_its_reference():
    """The reader of the .proto file misses no message, no field and no value, and each has a comment."""
    text = pages()[FOLDER / "proto.md"]
    for message in pb.DESCRIPTOR.message_types_by_name.values():
        nested = [each for each in message.nested_types if not each.GetOptions().map_entry]
        for each in [message, *nested]:
            name = each.full_name.removeprefix("admission.worker.v1.")
            assert f"\n## {name}\n" in text, f"{FILE}: {name}"
            section = text.split(f"\n## {name}\n")[1].split("\n## ")[0]
            for field in each.fields:
                row = next(line for line in section.splitlines() if line.startswith(f"| `{field.name}` |"))
                assert row.split(" | ")[2:3] == [str(field.number)]
                assert len(row.split(" | ")[3]) > len("| x |"), f"{FILE}: {name}.{field.name} has no comment"
    for enum in pb.DESCRIPTOR.enum_types_by_name.values():
        assert all(f"| `{value.name}` | {value.number} |" in text for value in enum.values)


def test_every_reason_code_says_what_to_do():
    """docs/denied.md has a section for each reason code."""
    anchors = written()["docs/denied.md"].anchors()
    assert {reason.value.lower() for reason in Reason} <= anchors


@pytest.mark.parametrize(
    ("fields", "on", "reason"),
    [
        ({"side_effects": SideEffects.SOME}, {"dryRun": True}, Reason.DRY_RUN_UNSUPPORTED),
        ({"namespace_selector": PROD}, {}, Reason.NAMESPACE_UNKNOWN),
    ],
)
def test_what_refuses_always_is_reported(fields, on, reason):
    """A reason of which docs/reference/reasons.md says "whatever the failurePolicy" refuses under Ignore as well."""
    chosen = policy("a", failure_policy=FailurePolicy.IGNORE, **fields)
    decision, _ = decide([chosen], {"a": Allow()}, on=request(**on), namespaces={"t": None})
    row = next(line for line in pages()[FOLDER / "reasons.md"].splitlines() if f"`{reason}`" in line)
    assert decision.calls[0].answer.reason is reason
    assert f"| {decision.response.status.code}, whatever the failurePolicy |" in row


def test_a_conflict_refuses_always_and_is_reported():
    """So does a change of what another policy wrote, where onConflict is deny."""
    fields = {"failure_policy": FailurePolicy.IGNORE, "on_conflict": OnConflict.DENY}
    policies = [policy(name, index=index, **fields) for index, name in enumerate("ab")]
    decision, _ = decide(policies, {"a": label("team", "a"), "b": label("team", "b")})
    row = next(line for line in pages()[FOLDER / "reasons.md"].splitlines() if f"`{Reason.PATCH_CONFLICT}`" in line)
    assert f"| {decision.response.status.code}, whatever the failurePolicy |" in row


def members(value):
    """The names of all members of a JSON value, but for those of free form."""
    if isinstance(value, list):
        return set().union(*map(members, value))
    if not isinstance(value, dict):
        return set()
    return set(value).union(*(members(each) for name, each in value.items() if name not in {"object", "details"}))


def reported(section):
    """The words of a section of docs/reference/documents.md."""
    text = pages()[FOLDER / "documents.md"].split(f"\n## {section}\n")[1].split("\n## ")[0]
    return set(re.findall(r"\w+", text))


def test_every_member_of_a_report_is_documented(tmp_path, monkeypatch):
    """docs/reference/documents.md names each member of what `check` and `review` print."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "quota.yaml").write_text(named("docs/policies.md", "quota.yaml"))
    (tmp_path / "faulty.yaml").write_text(named("docs/policies.md", "faulty.yaml"))
    checked = CliRunner().invoke(main, ["check", "quota.yaml", "faulty.yaml", "-o", "json"])
    # `details` is Kubernetes' own, and rules are as they are written.
    of_rules = {"operations", "apiGroups", "apiVersions", "resources", "scope"}
    assert not members(json.loads(checked.stdout)) - of_rules - reported("check")
    review = PROJECT / "examples" / "reviews" / "1-pod-create.json"
    reviewed = CliRunner().invoke(main, ["review", "--policies", "quota.yaml", str(review), "-o", "json"])
    refused = json.loads(reviewed.stdout.splitlines()[-1])
    assert (refused["phase"], refused["allowed"]) == ("validating", False)
    keys_are_data = {
        name for entry in refused["entries"] for call in entry["policies"] for name in call["auditAnnotations"]
    }
    assert not members(refused) - set(refused["auditAnnotations"]) - keys_are_data - reported("review")
