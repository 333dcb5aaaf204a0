"""``spec.hook`` of a Worker: the path of a shell-operator hook, and the kinds of the objects in its snapshots.

As in shell-operator, a kind may be given as its plural and in any letter case, and the apiVersion may be omitted (any).
"""

from typing import Final

from gateway.policies import field_errors
from gateway.policies.decoding.field import Field
from gateway.policies.workers.queue_target import read_path
from gateway.policies.workers.targets import HookTarget

MAX_KINDS: Final = 64
"""Of one hook's snapshots: shell-operator watches each kind, and hooks need a handful."""

FIELDS: Final = ("path", "snapshotsOf")
KIND_FIELDS: Final = ("apiVersion", "kind")


def read_hook(field: Field, directory: str) -> HookTarget | None:
    """The hook, without the objects of its snapshots; None if the field is no object. Errors are reported.

    ``directory`` is the base of a relative path: the directory of the document's file.
    """
    if not field.mapping(FIELDS):
        return None
    path, kinds = read_path(field.get("path")), _kinds(field.get("snapshotsOf"))
    return HookTarget(path=path, directory=directory, snapshots_of=kinds)


def is_named(kinds: tuple[tuple[str, str], ...], api_version: str, kind: str) -> bool:
    """Whether one of these kinds, as ``snapshots_of`` and ``kubernetes`` bindings name them, is the kind of an
    object.
    """
    lower = kind.lower()
    spellings = {lower, f"{lower}s", f"{lower}es", f"{lower.removesuffix('y')}ies"}
    return any(version in {"", api_version} and word.lower() in spellings for version, word in kinds)


def _kinds(field: Field) -> tuple[tuple[str, str], ...]:
    items = field.items(advice="a list of kinds such as [{apiVersion: v1, kind: Pod}]") or []
    if len(items) > MAX_KINDS:
        field.refuse(field_errors.too_many(len(items), MAX_KINDS))
        return ()
    kinds = []
    for item in items:
        if not item.mapping(KIND_FIELDS):
            continue
        kind, version = item.get("kind").text(""), item.get("apiVersion").text("")
        if kind == "":
            item.get("kind").refuse(field_errors.required())
        elif kind is not None and version is not None:
            kinds.append((version, kind))
    return tuple(sorted(set(kinds)))
