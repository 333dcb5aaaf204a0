"""The objects in a source's texts: which kinds there are, and what is none of them.

A v1 List, as ``kubectl get -o yaml`` prints it, stands for its items. Kinds that somebody else's tools would put here
are refused by name, so that nobody believes them to be in force.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from gateway.policies import wording
from gateway.policies.document import SourceText, read_documents
from gateway.policies.fields import Field, Findings
from gateway.policies.model import ConfigurationError, Phase, Place

WORKER: Final = "Worker"
NAMESPACE: Final = "Namespace"
CONFIGURATION_KINDS: Final = {
    "MutatingPolicyConfiguration": Phase.MUTATING,
    "ValidatingPolicyConfiguration": Phase.VALIDATING,
}

_OURS: Final = "admission-gateway.dev/v1alpha1"
_CORE: Final = "v1"
_KNOWN: Final = frozenset({(_CORE, NAMESPACE), (_OURS, WORKER), *((_OURS, kind) for kind in CONFIGURATION_KINDS)})
_LIST: Final = (_CORE, "List")
_NATIVE_GROUP: Final = "admissionregistration.k8s.io/"
_NATIVE_KINDS: Final = frozenset({"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"})
_KNOWN_WORDS: Final = f"known are {', '.join((WORKER, *CONFIGURATION_KINDS))} ({_OURS}) and {NAMESPACE}, List ({_CORE})"


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceObject:
    """One object of a known kind, and where commands in it are started. Whoever reads it chooses its findings."""

    kind: str
    document: Field
    directory: str


def read_objects(texts: Iterable[SourceText], fatal: Findings, warnings: Findings) -> list[SourceObject]:
    """The objects of all texts, in order; whatever cannot be one is reported to ``fatal``."""
    objects: list[SourceObject] = []
    empty: list[Place] = []
    for text in texts:
        nodes, error = read_documents(text)
        if error is not None:
            message = f"cannot be read as YAML or JSON: {error}"
            fatal.append(ConfigurationError(place=Place(file=text.name, line=error.line), message=message))
        elif not text.content.strip():
            # Comments alone are somebody's intention; nothing at all is what a write that was cut off leaves behind.
            message = "the file is empty; remove it, or write a comment into it if that is meant"
            fatal.append(ConfigurationError(place=Place(file=text.name, line=1), message=message))
        elif not nodes:
            empty.append(Place(file=text.name, line=1))
        for node in nodes:
            document = Field(node=node, place=Place(file=text.name, line=node.line), findings=fatal)
            objects.extend(_unfold(document, text.directory))
    for place in empty:
        # If there is nothing but such files, something went wrong before us.
        findings = warnings if objects or fatal else fatal
        findings.append(ConfigurationError(place=place, message="there is no object in this file"))
    return objects


def _unfold(document: Field, directory: str) -> Iterator[SourceObject]:
    identity = _identity(document)
    if identity == _LIST:
        items = document.get("items")
        if items.absent:
            items.refuse(wording.required())
        for item in items.items() or []:
            if item.mapping():
                # From here on paths are those of the object itself, as Kubernetes writes them.
                yield from _unfold(replace(item, place=replace(item.place, path="")), directory)
    elif identity is not None:
        yield SourceObject(kind=identity[1], document=document, directory=directory)


def _identity(document: Field) -> tuple[str, str] | None:
    """(apiVersion, kind) if they are known."""
    if not document.mapping():
        return None
    words = [document.get("apiVersion").text(""), document.get("kind").text("")]
    for name, word in zip(("apiVersion", "kind"), words, strict=True):
        if word == "":
            document.get(name).refuse(wording.required())
    version, kind = words
    if not version or not kind:
        return None
    if (version, kind) in _KNOWN or (version, kind) == _LIST:
        return version, kind
    if version.startswith(_NATIVE_GROUP) and kind in _NATIVE_KINDS:
        document.get("kind").refuse(
            f"{kind} objects cannot be loaded in this version; write a {kind.replace('Webhook', 'Policy')} of {_OURS}"
        )
    else:
        version, kind = wording.quote(version), wording.quote(kind)
        document.get("kind").refuse(f"no matches for kind {kind} in version {version}; {_KNOWN_WORDS}")
    return None
