"""``spec.hook`` of a Worker: an executable file, as shell-operator runs it, and the kinds of its snapshots' objects.

shell-operator looks kinds up in the cluster, so it takes their plural for them as well, in any case; and an apiVersion
may be left out, for any.
"""

from typing import Final

from gateway.policies import wording
from gateway.policies.fields import Field
from gateway.policies.model import HookTarget
from gateway.policies.queue_target import read_path

MAX_KINDS: Final = 64
"""Kinds of one hook's snapshots: shell-operator keeps a watch for each, and hooks have a handful."""

_HOOK: Final = ("path", "snapshotsOf")
_KIND: Final = ("apiVersion", "kind")


def read_hook(field: Field, directory: str) -> HookTarget | None:
    """The hook, still without objects; None if no object stands here. Mistakes are reported.

    ``directory`` is where a relative path begins: that of the file it stands in.
    """
    if not field.mapping(_HOOK):
        return None
    path, kinds = read_path(field.get("path")), _kinds(field.get("snapshotsOf"))
    return HookTarget(path=path, directory=directory, snapshots_of=kinds)


def is_named(kinds: tuple[tuple[str, str], ...], api_version: str, kind: str) -> bool:
    """Whether objects of this kind are among those that ``snapshots_of`` names."""
    lower = kind.lower()
    spellings = {lower, f"{lower}s", f"{lower}es", f"{lower.removesuffix('y')}ies"}
    return any(version in {"", api_version} and word.lower() in spellings for version, word in kinds)


def _kinds(field: Field) -> tuple[tuple[str, str], ...]:
    items = field.items(advice="a list of kinds such as [{apiVersion: v1, kind: Pod}]") or []
    if len(items) > MAX_KINDS:
        field.refuse(wording.too_many(len(items), MAX_KINDS))
        return ()
    kinds = []
    for item in items:
        if not item.mapping(_KIND):
            continue
        kind, version = item.get("kind").text(""), item.get("apiVersion").text("")
        if kind == "":
            item.get("kind").refuse(wording.required())
        elif kind is not None and version is not None:
            kinds.append((version, kind))
    return tuple(sorted(set(kinds)))
