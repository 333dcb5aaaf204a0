"""The file of ``--calls``: calls of the user's own policies, as YAML, JSON or JSON Lines.

A list, or one entry on each line (``*.jsonl``); each entry is one call::

    - policy: required-label
      phase: validating
      settings: {key: team}
      request: {operation: CREATE, object: {metadata: {labels: {}}}}
      expected: {deny: {message: label "team" is required, code: 403, reason: Forbidden}}

``request`` is an AdmissionRequest, or the members of it that matter; the kit removes its ``uid``, as the gateway does.
``expected`` is the expected outcome: see ``expectations``. With ``expected.errors`` there is no request.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Literal

import msgspec
import yaml

from worker_conformance.expectations import Expected, ExpectedCall
from worker_conformance.findings import StartError
from worker_conformance.policy_calls import PHASES, OrdinaryCall, text
from worker_conformance.proto.admission.worker.v1 import worker_pb2


class Entry(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """One entry of the file.

    Attributes:
        policy: the policy's name in the worker's description.
        phase: ``mutating`` or ``validating``.
        request: an AdmissionRequest.
        settings: the policy's settings; default ``{}``.
        expected: the expected outcome; None: any that the contract allows.
    """

    policy: str
    phase: Literal["mutating", "validating"]
    request: dict[str, msgspec.Raw] | None = None
    settings: msgspec.Raw = msgspec.Raw(b"{}")
    expected: Expected | None = None

    def __post_init__(self) -> None:
        """Check that there is a request, or expected errors.

        Raises:
            ValueError: there is neither.
        """
        if self.request is None and not (self.expected and self.expected.errors):
            raise ValueError("request is missing; only an entry with expected.errors has none")


@dataclass(frozen=True, kw_only=True, slots=True)
class Calls:
    """The content of a file.

    Args:
        ordinary: its calls.
        expected: the calls and the settings with an expected outcome.
    """

    ordinary: tuple[OrdinaryCall, ...] = ()
    expected: tuple[ExpectedCall, ...] = ()


class _Loader(yaml.SafeLoader):
    """YAML with JSON's types: a date is a string."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read(path: Path | Traversable) -> Calls:
    """The calls of a file.

    Raises:
        StartError: it cannot be read, or is not a list of calls; names the place of the first error.
    """
    try:
        entries = list((_of_lines if path.name.endswith(".jsonl") else _of_list)(path.name, path.read_bytes()))
        return Calls(ordinary=tuple(_ordinary(entries)), expected=tuple(_expected(entries)))
    except (OSError, UnicodeDecodeError) as error:
        message = f"--calls {path}: {getattr(error, 'strerror', None) or error}"
    except yaml.YAMLError as error:
        message = f"--calls {path}: neither YAML nor JSON: {' '.join(str(error).split())}"
    except (msgspec.MsgspecError, TypeError, ValueError) as error:
        message = f"--calls {path}: must be a list of {{policy, phase, settings, request, expected}}: {error}"
    raise StartError(message)


def _of_list(name: str, content: bytes) -> Iterator[tuple[str, Entry]]:
    """The entries of YAML or JSON, each with its label."""
    found = yaml.load(content.decode(), Loader=_Loader)  # noqa: S506 - it is a SafeLoader
    for place, entry in enumerate(msgspec.json.decode(text(found), type=list[Entry])):
        yield f"{name}[{place}] {entry.policy}", entry


def _of_lines(name: str, content: bytes) -> Iterator[tuple[str, Entry]]:
    """The entries of JSON Lines, each with its label."""
    for number, line in enumerate(content.splitlines(), 1):
        try:
            entry = msgspec.json.decode(line, type=Entry)
        except msgspec.MsgspecError as error:
            raise ValueError(f"line {number}: {error}") from None
        yield f"{name}:{number} {entry.policy}", entry


def check_described(calls: Calls, description: worker_pb2.DescribeResponse) -> None:
    """Check that the worker describes each policy of the file, in the phase of the call.

    Raises:
        StartError: it does not.
    """
    described = {policy.name: set(policy.phases) for policy in description.policies}
    chosen: tuple[OrdinaryCall | ExpectedCall, ...] = (*calls.ordinary, *calls.expected)
    for call in chosen:
        if call.phase not in described.get(call.policy, set()):
            names = ", ".join(sorted(described)) or "none"
            phase = worker_pb2.Phase.Name(call.phase)
            message = (
                f"--calls: {call.label}: the worker describes no policy {call.policy!r} for {phase}; it has: {names}"
            )
            raise StartError(message)


def _ordinary(entries: Iterable[tuple[str, Entry]]) -> Iterator[OrdinaryCall]:
    for label, entry in entries:
        if entry.request is not None:
            # Not msgspec, which rejects a number larger than a float.
            document = json.loads(_document(entry))
            settings, phase = bytes(entry.settings), PHASES[entry.phase]
            yield OrdinaryCall(
                label=label, policy=entry.policy, phase=phase, settings=settings, document=document, chosen=True
            )


def _expected(entries: Iterable[tuple[str, Entry]]) -> Iterator[ExpectedCall]:
    for label, entry in entries:
        if entry.expected is not None:
            yield ExpectedCall(
                label=label, policy=entry.policy, phase=PHASES[entry.phase], settings=bytes(entry.settings),
                document=_document(entry), expected=entry.expected,
            )  # fmt: skip


def _document(entry: Entry) -> bytes:
    """The document's JSON text."""
    return text({key: value for key, value in (entry.request or {}).items() if key != "uid"})
