"""The objects in a source's texts: which kinds there are, and what is none of them.

A v1 List, as ``kubectl get -o yaml`` prints it, stands for its items, and so does the list of a native kind, as the
API server answers it. Objects of any other kind are unknown: the snapshots of hooks may be made of them
(``snapshots``); if they are not, they are refused by name, since an ignored object would seem to be in force.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from gateway.policies import field_errors
from gateway.policies.decoding.field import Field
from gateway.policies.decoding.native_types import VERSIONS
from gateway.policies.decoding.texts import SourceText, read_documents
from gateway.policies.errors import ConfigurationError, Findings, Place
from gateway.policies.model import Phase
from gateway.policies.suggestions import did_you_mean

WORKER: Final = "Worker"
NAMESPACE: Final = "Namespace"
CONFIGURATION_KINDS: Final = {
    "MutatingPolicyConfiguration": Phase.MUTATING,
    "ValidatingPolicyConfiguration": Phase.VALIDATING,
}
NATIVE_KINDS: Final = {
    "MutatingWebhookConfiguration": Phase.MUTATING,
    "ValidatingWebhookConfiguration": Phase.VALIDATING,
}

GROUP: Final = "admission-gateway.dev"
"""The API group of the gateway's own kinds."""
VERSION: Final = "v1alpha1"
_OURS: Final = f"{GROUP}/{VERSION}"
_CORE: Final = "v1"
_NATIVE_GROUP: Final = "admissionregistration.k8s.io"
_NATIVE: Final = tuple(f"{_NATIVE_GROUP}/{version}" for version in VERSIONS)
_KNOWN: Final = frozenset(
    {
        (_CORE, NAMESPACE),
        (_OURS, WORKER),
        *((_OURS, kind) for kind in CONFIGURATION_KINDS),
        *((version, kind) for version in _NATIVE for kind in NATIVE_KINDS),
    }
)
_LISTS: Final[Mapping[tuple[str, str], str]] = {
    (_CORE, "List"): "",
    **{(version, f"{kind}List"): kind for version in _NATIVE for kind in NATIVE_KINDS},
}
"""The lists, and the kind of their items: those of a typed list do not have it themselves."""

_KNOWN_WORDS: Final = (
    f"known are {', '.join((WORKER, *CONFIGURATION_KINDS))} ({_OURS}), {', '.join(NATIVE_KINDS)} "
    f"({', '.join(_NATIVE)}) and {NAMESPACE}, List ({_CORE})"
)


class Section(Struct, frozen=True, kw_only=True):
    """What is wrong with one object, or with a text itself: ``fatal`` leaves open who is in the chain."""

    file: str
    line: int
    fatal: Findings = field(default_factory=list)
    faults: Findings = field(default_factory=list)


class SourceObject(Struct, frozen=True, kw_only=True):
    """One object, and where commands in it are started (``in_cluster``: nowhere). Its errors go to ``section``.

    ``api_version`` is as it is written; ``version`` is a native kind's, without its group, and "" for the others.
    """

    kind: str
    api_version: str
    version: str
    document: Field
    directory: str
    in_cluster: bool
    section: Section


class Objects(Struct, frozen=True, kw_only=True):
    """What stands in texts, in order: objects of known kinds, the others, and a section for each, and for whatever
    cannot be an object.
    """

    known: list[SourceObject] = field(default_factory=list)
    unknown: list[SourceObject] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)


def read_objects(texts: Iterable[SourceText], warnings: Findings) -> Objects:
    """The objects of all texts."""
    reader = _Reader()
    empty: list[Place] = []
    for text in texts:
        warnings.extend(text.warnings)
        for found in text.errors:
            reader.refuse(found.place, found.message)
        nodes, error = read_documents(text)
        if error is not None:
            reader.refuse(Place(file=text.name, line=error.line), f"cannot be read as YAML or JSON: {error}")
        elif not text.content.strip():
            # Comments alone are deliberate; an empty file is what an interrupted write leaves behind.
            message = "the file is empty; remove it, or write a comment into it if it is empty on purpose"
            reader.refuse(Place(file=text.name, line=1), message)
        elif not nodes:
            empty.append(Place(file=text.name, line=1))
        for node in nodes:
            reader.unfold(Field(node=node, place=Place(file=text.name, line=node.line), findings=[]), text)
    has_something = bool(reader.found.sections)
    for place in empty:
        message = "there is no object in this file"
        if has_something:
            warnings.append(ConfigurationError(place=place, message=message))
        else:
            # If there is nothing but such files, something went wrong before us.
            reader.refuse(place, message)
    return reader.found


def refuse_unknown(item: SourceObject) -> None:
    """Report an object of a kind that is not used."""
    kinds = sorted({kind for _, kind in _KNOWN})
    item.document.get("kind").refuse(_unknown(item.api_version, item.kind), did_you_mean(item.kind, kinds))


class _Reader:
    def __init__(self) -> None:
        self.found = Objects()

    def refuse(self, place: Place, message: str) -> None:
        """Report what is no object."""
        self._section(place).fatal.append(ConfigurationError(place=place, message=message))

    def unfold(self, document: Field, text: SourceText, item_of: tuple[str, str] | None = None) -> None:
        """Take up one object, or the items of a list; ``item_of`` is what the items of a typed list are."""
        section = self._section(document.place)
        document = replace(document, findings=section.fatal)
        identity = (item_of if document.mapping() else None) if item_of else _identity(document)
        if identity is None:
            return
        if identity not in _LISTS:
            version, kind = identity
            whose = self.found.known if identity in _KNOWN else self.found.unknown
            whose.append(
                SourceObject(
                    kind=kind,
                    api_version=version,
                    version=version.partition("/")[2] if version in _NATIVE else "",
                    document=document,
                    directory=text.directory,
                    in_cluster=text.in_cluster,
                    section=section,
                )
            )
            return
        items = document.get("items")
        if items.absent and not _LISTS[identity]:
            items.refuse(field_errors.required())
        inner = (identity[0], _LISTS[identity]) if _LISTS[identity] else None
        for item in items.items() or []:
            if item.mapping():
                # From here on paths are those of the object itself, as Kubernetes writes them.
                self.unfold(replace(item, place=replace(item.place, path="")), text, inner)

    def _section(self, place: Place) -> Section:
        section = Section(file=place.file, line=place.line)
        self.found.sections.append(section)
        return section


def _identity(document: Field) -> tuple[str, str] | None:
    """(apiVersion, kind), if the document has them."""
    if not document.mapping():
        return None
    words = [document.get("apiVersion").text(""), document.get("kind").text("")]
    for name, word in zip(("apiVersion", "kind"), words, strict=True):
        if word == "":
            document.get(name).refuse(field_errors.required())
    version, kind = words
    return (version, kind) if version and kind else None


def _unknown(version: str, kind: str) -> str:
    if version.startswith(f"{_NATIVE_GROUP}/") and kind not in NATIVE_KINDS:
        named = field_errors.quote(kind)[1:-1]
        return f"{named} objects are configuration of the API server and cannot be loaded; {_KNOWN_WORDS}"
    return f"no matches for kind {field_errors.quote(kind)} in version {field_errors.quote(version)}; {_KNOWN_WORDS}"
