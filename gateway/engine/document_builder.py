"""The document that a policy is called with, or the lookup that it needs first.

``/namespaceObject/…`` among the inputs needs the namespace's labels. A namespace that does not exist is the same
failure as for a namespaceSelector: without the labels, the document would be a different one.
"""

from msgspec import Struct

from gateway.documents.documents import Document, Documents
from gateway.engine.match_errors import namespace_unknown
from gateway.engine.object_state import ObjectState
from gateway.engine.plan import Member
from gateway.engine.verdicts import Failure
from gateway.matching.outcomes import NeedsNamespace
from gateway.matching.pipeline import Facts
from gateway.matching.selectors import Labels


class DocumentBuilder(Struct, eq=False):
    """Makes the documents of one review; ``facts`` holds what lookups have found so far."""

    documents: Documents
    facts: Facts

    def of(self, member: Member, obj: ObjectState) -> Document | NeedsNamespace | Failure:
        """This policy's document for the current object. Raises ReviewError as Documents does."""
        labels = self._labels(member) if member.inputs.needs_namespace else None
        if isinstance(labels, NeedsNamespace | Failure):
            return labels
        return self.documents.of(member.inputs, obj.after, changed=obj.after is not None, namespace=labels)

    def of_original(self, member: Member) -> Document | NeedsNamespace | Failure:
        """This policy's document for the original object."""
        labels = self._labels(member) if member.inputs.needs_namespace else None
        if isinstance(labels, NeedsNamespace | Failure):
            return labels
        return self.documents.of(member.inputs, None, changed=False, namespace=labels)

    def _labels(self, member: Member) -> Labels | NeedsNamespace | Failure | None:
        namespace = self.documents.namespace
        if not namespace:
            return None
        if namespace not in self.facts.namespaces:
            return NeedsNamespace(namespace=namespace)
        labels = self.facts.namespaces[namespace]
        return namespace_unknown(member.policy, namespace) if labels is None else labels
