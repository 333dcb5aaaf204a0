"""Whatever a hook prints and leaves in its files: it is a configuration or errors, a verdict or HookFailedError.

* The output of ``--config`` gives a configuration, or errors that name their place. A configuration becomes policies
  that load.
* The answer files give a verdict, which decides as ``judging`` says, or the hook has failed.

The first byte of an input is the phase, the second: 0 the output of ``--config``, 1 all answer files, with zero bytes
between them: answer, metrics, operations, conversion.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gateway.hooks.configuration.policies import Hook, hooks_text
from gateway.hooks.configuration.reader import read_hook_configuration
from gateway.hooks.protocol.verdicts import AnswerFiles, HookFailedError, done_on_error, verdict
from gateway.policies.configuration import load
from tests.fuzz import judging

CASES = Path(__file__).parents[1] / "conformance" / "cases"
WORDS = (
    b"configVersion: v1 | kubernetesValidating: | kubernetesMutating: | kubernetes: | rules: | "
    b"includeSnapshotsFrom: | group:  | labelSelector: | fieldSelector: | jqFilter:  | settings: | "
    b'executionMinInterval:  | name:  | "allowed":true | "patch":"W10=" | "message" | "warnings" | '
    b'"status":{"code": | \\ud800 | \x00 | null | "operation":"JSONPatch" | "operation":"CreateOrUpdate" | '
    b'"subresource":"/status" | "ignoreHookError":true | "object" | "jsonPatch" | ---\n | &a  | *a | 1e999 | '
    b'"name":"../x"'
).split(b" | ")


def seeds() -> Iterator[bytes]:
    """The cases of conformance."""
    for case in _cases("shell_operator_hook_config.jsonl"):
        if isinstance(case.get("config"), str):
            yield b"\x00\x00" + case["config"].encode()
    for case in _cases("shell_operator_response_file.jsonl"):
        if isinstance(case.get("file"), str):
            yield b"\x00\x01" + case["file"].encode()
            yield b"\x80\x01" + case["file"].encode() + b'\x00{"name":"m","set":1}\x00\x00'
    operation = {"operation": "JSONPatch", "kind": "Pod", "name": "p", "jsonPatch": [], "subresource": "/status"}
    yield b'\x80\x01{"allowed":true}\x00\x00' + json.dumps(operation).encode()
    documents = b"operation: Delete\nkind: Pod\nname: p\n---\noperation: Create\nobject: {kind: Pod}\n"
    yield b'\x80\x01{"allowed":true}\x00\x00' + documents


def _cases(name: str) -> Iterator[dict[str, object]]:
    for line in (CASES / name).read_text().splitlines()[1:]:
        yield json.loads(line)


def run(data: bytes) -> None:
    """See the invariant above."""
    phase, rest = judging.phase_of(data)
    if rest[:1] < b"\x01":
        _configuration(rest[1:])
        return
    answer, metrics, operations, conversion = (*rest[1:].split(b"\x00", 3), b"", b"", b"")[:4]
    files = AnswerFiles(response=answer, metrics=metrics, patches=operations, conversion=conversion)
    requested: list[Any] = []
    try:
        given = verdict(files, hook="/hooks/h", binding="judge", phase=phase, operations=requested)
    except HookFailedError as error:
        given = error.denial
    judging.check(given, phase)
    for each in (*requested, *done_on_error(operations)):
        str(each)
        for segment in (each.name, each.namespace, each.subresource.removeprefix("/")):
            assert segment not in {".", ".."}
            assert not set("/%?#") & set(segment), segment


def _configuration(output: bytes) -> None:
    reading = read_hook_configuration(output, "hook --config")
    for error in reading.errors:
        assert str(error.place)
        assert error.message
    if reading.configuration is None:
        assert reading.errors
        return
    text = hooks_text(
        [Hook(path="h", name="/hooks/h", configuration=reading.configuration)],
        name="/hooks",
        directory="/hooks",
        configuration="hooks",
    )
    made = load([text])
    assert not made.errors or text.errors or made.fatal or all(error.message for error in made.errors)
