"""What a shell-operator hook says of itself, once read. Values only: frozen, keyword-only, without behaviour."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from gateway.policies.model import Phase, Selector


class FieldRequirement(Struct, frozen=True, kw_only=True):
    """One expression of a fieldSelector: the value at a path such as ``metadata.name`` is this one, or is not."""

    field: str
    value: str
    equals: bool = True


class ObjectBinding(Struct, frozen=True, kw_only=True):
    """One element of ``kubernetes``: which objects a snapshot is made of, and what of each.

    ``api_version`` may be "" (then any). ``kind`` is as it is written: shell-operator takes a kind, its plural, in any
    case. ``names`` and ``namespaces``: empty, all. ``labels`` and ``namespace_labels``: None, all. ``jq_filter`` may be
    "". ``keeps_objects``: the objects themselves are in the snapshot, not only what the filter made of them.
    """

    name: str
    kind: str
    api_version: str = ""
    names: tuple[str, ...] = ()
    labels: Selector | None = None
    fields: tuple[FieldRequirement, ...] = ()
    namespaces: tuple[str, ...] = ()
    namespace_labels: Selector | None = None
    jq_filter: str = ""
    group: str = ""
    keeps_objects: bool = True


class AdmissionBinding(Struct, frozen=True, kw_only=True):
    """One element of ``kubernetesValidating`` or ``kubernetesMutating``.

    ``snapshots_from`` names bindings of ``kubernetes``: those it includes, and all of its group; None: it asks for no
    snapshots at all. ``webhook`` are the fields of a webhook of admissionregistration.k8s.io/v1 that it is registered
    with, as JSON, shell-operator's defaults filled in; those that it does not say are not there.
    """

    name: str
    phase: Phase
    webhook: Mapping[str, Any]
    group: str = ""
    snapshots_from: tuple[str, ...] | None = None


class HookConfiguration(Struct, frozen=True, kw_only=True):
    """What a hook printed when it was run with ``--config``. ``version`` is its configVersion; v0 has no admission."""

    version: str
    objects: tuple[ObjectBinding, ...] = ()
    mutating: tuple[AdmissionBinding, ...] = ()
    validating: tuple[AdmissionBinding, ...] = ()
    conversions: tuple[str, ...] = ()
    """The names of the elements of ``kubernetesCustomResourceConversion``."""

    def bindings(self, phase: Phase) -> tuple[AdmissionBinding, ...]:
        """Those of one phase."""
        return self.mutating if phase is Phase.MUTATING else self.validating
