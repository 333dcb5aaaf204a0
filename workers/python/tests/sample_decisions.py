"""Records the samples' decisions for the calls of the conformance kit, with the digits of numbers.

``python -m workers.python.tests.sample_decisions`` records it anew, after a sample has changed or a call was added:
each line's ``expected`` is then what these samples answer.
"""

import json
from pathlib import Path

import msgspec

from admission_worker import Deny, Request, json_text
from admission_worker.errors import InvalidSettingsError
from admission_worker.outcomes import accepted
from admission_worker.projection import document_of
from admission_worker.samples import worker

RECORDING = Path(__file__).parents[2] / "conformance/worker_conformance/samples.jsonl"


class Line(msgspec.Struct, omit_defaults=True):
    """A line of the recording; ``expected`` is the recorded outcome."""

    policy: str
    phase: str
    settings: msgspec.Raw
    request: msgspec.Raw = msgspec.Raw(b"")
    expected: msgspec.Raw = msgspec.Raw(b"")


def decided(line):
    """The line with the samples' answer."""
    entry = msgspec.json.decode(line, type=Line)
    entry.expected = msgspec.Raw(_outcome(entry).encode())
    return msgspec.json.encode(entry)


def _outcome(line):
    policy = worker.policies[line.policy]
    try:
        settings, _ = policy.settings.read(bytes(line.settings))
    except InvalidSettingsError as error:
        return _text({"errors": [{"pointer": each.pointer, "message": each.message} for each in error.errors]})
    document = document_of(json_text.decoder().decode(line.request), policy.inputs)
    request = Request(json_text.encoded(document))
    answer = accepted(policy.function(*policy.arguments(request, settings)), policy.phase)
    return f"{{{_verdict(answer)}{_warnings(answer)}}}"


def _verdict(answer):
    if isinstance(answer, Deny):
        causes = [{"field": each.field, "message": each.message, "reason": each.reason} for each in answer.causes]
        denied = {"message": answer.message, "code": answer.code, "reason": answer.reason}
        return f'"deny":{_text(denied | ({"causes": causes} if causes else {}))}'
    if answer.change is None or answer.change.content == b"[]":
        return '"allow":{}'
    return f'"allow":{{"patch":{answer.change.content.decode()}}}'


def _warnings(answer):
    return f',"warnings":{_text(answer.warnings)}' if answer.warnings else ""


def _text(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def main():
    """Record the decisions."""
    lines = RECORDING.read_bytes().splitlines()
    RECORDING.write_bytes(b"".join(decided(line) + b"\n" for line in lines))


if __name__ == "__main__":
    main()
