"""metav1.ObjectMeta of a cluster-scoped object: its name, and Kubernetes' validation of the rest (ValidateObjectMeta).

The name is all that is used. The rest is judged as the API server judges it on CREATE; what it sets itself there (uid,
resourceVersion, generation, timestamps, as kubectl prints them) is accepted and not looked at.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from gateway.gotypes.meta import OBJECT_META, OWNER_REFERENCE
from gateway.policies import field_errors
from gateway.policies.decoding.field import Field
from gateway.policies.decoding.nodes import Scalar
from gateway.policies.fields.selectors import read_labels
from gateway.policies.model import Selector
from gateway.policies.names import annotation_key, dns_label, dns_subdomain, label_key, name_prefix

MAX_ANNOTATIONS: Final = 256 * 1024
"""Bytes of all annotations together, names and values (TotalAnnotationSizeLimitB)."""

MAX_MANAGER: Final = 128
MAX_SUBRESOURCE: Final = 256

MAX_REPEATED: Final = 10
"""Reported errors that each repeat the whole value (of a manager's characters, of several controllers): more of them
would grow with its square."""

_UNNAMED: Final = "name or generateName is required"
_GENERATED: Final = f"{_UNNAMED}; generateName makes a name in a cluster only: write the name"
_ORPHAN: Final = "orphan"
_FOREGROUND: Final = "foregroundDeletion"


def read_name(document: Field, syntax: Callable[[str], list[str]] = dns_subdomain) -> str | None:
    """The name of a cluster-scoped object, or None where there is no usable one; errors around it are reported."""
    metadata = document.get("metadata")
    if not metadata.absent and not metadata.mapping(OBJECT_META.fields):
        return None
    prefix = metadata.get("generateName").text("") or ""
    if prefix:
        metadata.get("generateName").refuse_each(prefix, name_prefix(prefix))
    name = metadata.get("name").name(syntax, _GENERATED if prefix else _UNNAMED)
    if metadata.get("namespace").text(""):
        metadata.get("namespace").refuse(field_errors.forbidden("not allowed on this type"))
    read_labels(metadata.get("labels"))
    _check_annotations(metadata.get("annotations"))
    _check_owners(metadata.get("ownerReferences"))
    _check_finalizers(metadata.get("finalizers"))
    for entry in metadata.get("managedFields").items() or []:
        _check_manager(entry)
    return name


def _check_annotations(field: Field) -> None:
    size = 0
    field.mapping()
    for key, member in sorted(field.members(), key=lambda pair: pair[0]):
        size += len(key.encode()) + len((member.text() or "").encode())
        member.reported_at(field).refuse_each(key, annotation_key(key))
    if size > MAX_ANNOTATIONS:
        field.refuse(field_errors.too_long(MAX_ANNOTATIONS))


def _check_owners(field: Field) -> None:
    owners = [owner for owner in field.items() or [] if owner.mapping(OWNER_REFERENCE.fields)]
    controllers = []
    for owner in owners:
        kind = _check_owner(owner.reported_at(field))
        if _member(owner, "controller") is not True:
            continue
        controllers.append(f"{kind}/{owner.get('name').raw_text or ''}")
        if 1 < len(controllers) <= MAX_REPEATED:
            detail = (
                "Only one reference can have Controller set to true. "
                f'Found "true" in references for {controllers[0]} and {controllers[-1]}'
            )
            field.refuse(field_errors.invalid_typed([_owner_json(each) for each in owners], detail))


def _check_owner(owner: Field) -> str:
    """validateOwnerReference, of an owner at its list's path: Kubernetes reports no index. Its kind."""
    version, kind = owner.get("apiVersion").text("") or "", owner.get("kind").text("") or ""
    group, _, rest = version.rpartition("/")
    parsed = "" if "/" in group else rest
    if not parsed:
        owner.get("apiVersion").refuse(field_errors.invalid(version, "version must not be empty"))
    if not kind:
        owner.get("kind").refuse(field_errors.invalid(kind, "must not be empty"))
    if not owner.get("name").text(""):
        owner.get("name").refuse(field_errors.invalid("", "must not be empty"))
    if not owner.get("uid").text(""):
        owner.get("uid").refuse(field_errors.invalid_typed("", "must not be empty"))
    if (group, parsed, kind) == ("", "v1", "Event"):
        detail = "/v1, Kind=Event is disallowed from being an owner"
        owner.refuse(field_errors.invalid_typed(_owner_json(owner), detail))
    return kind


def _owner_json(owner: Field) -> dict[str, Scalar]:
    """An OwnerReference as Go would write it: the pointers only where they are set."""
    texts: dict[str, Scalar] = {name: owner.get(name).raw_text or "" for name in ("apiVersion", "kind", "name", "uid")}
    flags = {name: _member(owner, name) for name in ("controller", "blockOwnerDeletion")}
    return texts | {name: flag for name, flag in flags.items() if flag is not None}


def _member(owner: Field, name: str) -> bool | None:
    node = owner.get(name).node
    return node.value if node is not None and isinstance(node.value, bool) else None


def _check_finalizers(field: Field) -> None:
    finalizers = [text for _, text in field.texts() or []]
    for finalizer in finalizers:
        field.refuse_each(finalizer, label_key(finalizer))
    if _ORPHAN in finalizers and _FOREGROUND in finalizers:
        detail = f"finalizer {_ORPHAN} and {_FOREGROUND} cannot be both set"
        field.refuse(field_errors.invalid(finalizers, detail))


def _check_manager(entry: Field) -> None:
    """One element of ValidateManagedFields."""
    if not entry.mapping():
        return
    operation = entry.get("operation").text("")
    if operation is not None and operation not in {"Apply", "Update"}:
        entry.get("operation").refuse(field_errors.invalid_typed(operation, "must be `Apply` or `Update`"))
    kind = entry.get("fieldsType").text("")
    if kind and kind != "FieldsV1":
        entry.get("fieldsType").refuse(field_errors.invalid(kind, "must be `FieldsV1`"))
    manager = entry.get("manager").text("") or ""
    if len(manager.encode()) > MAX_MANAGER:
        entry.get("manager").refuse(field_errors.too_long(MAX_MANAGER))
    entry.get("manager").refuse_each(manager, list(islice(_unprintable(manager), MAX_REPEATED)))
    if len((entry.get("subresource").text("") or "").encode()) > MAX_SUBRESOURCE:
        entry.get("subresource").refuse(field_errors.too_long(MAX_SUBRESOURCE))


def _unprintable(manager: str) -> Iterator[str]:
    position = 0
    for char in manager:
        if not char.isprintable():
            yield f"invalid character U+{ord(char):04X} (at position {position})"
        position += len(char.encode())


NAME_LABEL: Final = "kubernetes.io/metadata.name"
"""Kubernetes: "The Kubernetes control plane sets an immutable label kubernetes.io/metadata.name on all namespaces. The
value of the label is the namespace name." """


def selects_by_name(selector: Selector) -> bool:
    """Whether a namespaceSelector needs only the label of a namespace's name, which is always known."""
    return all(requirement.key == NAME_LABEL for requirement in selector.requirements)


def read_namespace(document: Field) -> tuple[str | None, dict[str, str] | None]:
    """The Namespace's name (None: it has no usable one), and its labels if there is no error in it."""
    before = len(document.findings)
    metadata = document.get("metadata")
    if not metadata.absent and not metadata.mapping():
        return None, None
    name = metadata.get("name").name(dns_label)
    labels = read_labels(metadata.get("labels"))
    if name is None or len(document.findings) > before:
        return name, None
    return name, labels | {NAME_LABEL: name}
