"""What is generated says what the source says, and nothing that the source says is missing."""

from docs.generator import COMMAND, FOLDER, ROOT, drifted, pages
from docs.generator.contract import FILE
from gateway.policies.later import GRPC, POLICY, WORKER
from gateway.reasons import Reason
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from tests.docs.pages import pages as written


def test_the_references_are_those_of_the_source():
    """After a change of a flag, limit, metric, reason code or the worker's contract: `make docs`."""
    stale = [str(path) for path in drifted()]
    assert not stale, f"run `{COMMAND}`: {', '.join(stale)} is not what the source says"


def test_there_is_no_other_reference():
    """Whatever lies in docs/reference is generated: nobody edits it by hand."""
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


def test_every_field_of_a_later_version_is_told():
    """docs/status.md names each field that is refused because its feature comes later."""
    text = written()["docs/status.md"].text
    of_webhooks = {"clientConfig", "admissionReviewVersions"}
    fields = {*(POLICY.keys() - of_webhooks), *WORKER, *(f"grpc.{name}" for name in GRPC)}
    assert not {name for name in fields if f"`{name}`" not in text}
