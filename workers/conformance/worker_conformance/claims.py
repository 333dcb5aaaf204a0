"""Claims applied: a document's projection onto ``inputs``, and the places that a change alters, for ``writes``."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from worker_conformance.patches import Json, same
from worker_conformance.pointers import Place, covers, pointer, tokens
from worker_conformance.proto.admission.worker.v1 import worker_pb2

ALWAYS: Sequence[Place] = (("kind",), ("resource",), ("subResource",), ("operation",), ("dryRun",))
"""Members of every document, whatever the policy claims."""

_MISSING: Any = object()


def places(claim: worker_pb2.Claim) -> tuple[Place, ...] | None:
    """The claimed places; None: everything."""
    if claim.WhichOneof("claim") == "everything":
        return None
    return tuple(tokens(text) for text in claim.pointers.pointers)


def projected(document: Mapping[str, Json], claimed: Sequence[Place]) -> dict[str, Json]:
    """The part of a document that a policy with these inputs gets: the claimed places, and their parents.

    "Where fields of the object were not granted they are absent; arrays keep their length and positions."

    Args:
        document: the whole document.
        claimed: places in the document.
    """
    found = _part(dict(document), (*ALWAYS, *claimed), ())
    return found if isinstance(found, dict) else {}


def _part(value: Json, claimed: Sequence[Place], here: Place) -> Json:
    if any(covers(claim, here) for claim in claimed):
        return value
    below = [claim for claim in claimed if len(claim) > len(here) and covers(claim[: len(here)], here)]
    if isinstance(value, dict):
        parts = {key: _part(part, below, (*here, key)) for key, part in value.items()} if below else {}
        return {key: part for key, part in parts.items() if part is not _MISSING} if below else _MISSING
    if isinstance(value, list):
        if not below:
            return _MISSING
        return [_kept(part, below, (*here, str(index))) for index, part in enumerate(value)]
    return _MISSING


def _kept(value: Json, claimed: Sequence[Place], here: Place) -> Json:
    """An array's element, which keeps its position: an empty value stands for a hidden one."""
    part = _part(value, claimed, here)
    if part is not _MISSING:
        return part
    return {} if isinstance(value, dict) else [] if isinstance(value, list) else None


def differences(before: Json, after: Json, here: Place = ()) -> Iterator[tuple[str, Json]]:
    """The smallest places in which two values differ, each with its value in the second (None without one)."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys((*before, *after)):
            yield from differences(before.get(key, _MISSING), after.get(key, _MISSING), (*here, key))
    elif isinstance(before, list) and isinstance(after, list):
        for index in range(max(len(before), len(after))):
            one = before[index] if index < len(before) else _MISSING
            other = after[index] if index < len(after) else _MISSING
            yield from differences(one, other, (*here, str(index)))
    elif before is _MISSING and isinstance(after, dict | list) and after:
        yield from differences(type(after)(), after, here)
    elif before is _MISSING or after is _MISSING or not same(before, after):
        yield pointer(here), None if after is _MISSING else after
