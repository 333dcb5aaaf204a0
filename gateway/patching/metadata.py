"""Checks that a changed object still has the same kind, and metadata that kube-apiserver can read.

Only the API server has the types and can decode the whole patched object. ``metadata`` is the same for all types
(metav1.ObjectMeta), so its JSON types are checked here: an error is then a failure of the policy that made it, under
its failurePolicy, and not a 500 of the API server that names the gateway.

``apiVersion`` and ``kind`` name the type. What kube-apiserver does when a patch changes them:

==========================  ==================================================  =========================
the patch                   a built-in type                                     a custom resource
==========================  ==================================================  =========================
removes or empties kind     accepted: the type is known                         "Object 'Kind' is missing"
another kind                "unknown conversion", or "no kind ... registered"   422 "must be KIND"
removes apiVersion          accepted: the type is known                         422 "must be GROUP/VERSION"
another version             accepted if it knows it, and converted              422 "must be GROUP/VERSION"
==========================  ==================================================  =========================

The gateway rejects all of them.
"""

from typing import Any, Final

from gateway.gotypes.meta import OBJECT_META
from gateway.gotypes.places import DecodeError
from gateway.gotypes.types import STRING_MAP, read

_TYPE_META: Final = ("apiVersion", "kind")
_TEXT: Final = frozenset({str})
_SHOWN: Final = 100
"""Characters of an apiVersion or kind that a message quotes: a kind has at most 63."""


def object_fault(before: dict[str, Any], after: dict[str, Any]) -> str | None:
    """What kube-apiserver could not read in a changed object, and what to do; None if there is no error.

    Args:
        before: the object before the change; unchanged parts are not checked.
        after: the object with the change.
    """
    for name in _TYPE_META:
        fault = _type_fault(name, before.get(name), after.get(name))
        if fault is not None:
            return fault
    old, new = before.get("metadata"), after.get("metadata")
    if new is old:
        return None
    if type(old) is not dict or type(new) is not dict:
        return metadata_fault(new)
    # No member's type depends on another member, so only changed members are checked. Most changes are of a label.
    changed = {name: each for name, each in new.items() if each is not old.get(name) and not _holds_texts(name, each)}
    return metadata_fault(changed) if changed else None


def _holds_texts(name: str, value: Any) -> bool:
    return (
        OBJECT_META.fields.get(name) is STRING_MAP and type(value) is dict and set(map(type, value.values())) <= _TEXT
    )


def metadata_fault(metadata: Any) -> str | None:
    """The error in the JSON types of an object's ``metadata``; None if there is none, or it is null or absent."""
    try:
        read(metadata, OBJECT_META)
    except DecodeError as error:
        field = f"metadata.{error.field}" if error.path else "metadata"
        return (
            f"{field}: expected {error.expected}, found {error.found}; "
            "kube-apiserver could not read the object: correct what the policy writes there"
        )
    return None


def _type_fault(name: str, old: Any, new: Any) -> str | None:
    if new == old:
        return None
    was = "absent" if old is None else _shown(old)
    found = "nothing" if new is None else _shown(new)
    return f"{name}: it was {was}, and the change leaves {found}; a policy cannot change what kind of object it is"


def _shown(value: Any) -> str:
    return repr(value[:_SHOWN]) if isinstance(value, str) else "what is no string"
