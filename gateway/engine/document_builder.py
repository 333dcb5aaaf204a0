"""The document of a policy, for the object as it is; or what must be known before there is one.

``/namespaceObject/…`` among the inputs needs the namespace's labels. A namespace that nobody knows is the same failure
as where a namespaceSelector needs it: a document without it would be another question.
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
    """Makes the documents of one review; ``facts`` are those found so far."""

    documents: Documents
    facts: Facts

    def of(self, member: Member, obj: ObjectState) -> Document | NeedsNamespace | Failure:
        """What this policy is sent about the object as it now is. Raises ReviewError as Documents does."""
        labels = self._labels(member) if member.inputs.needs_namespace else None
        if isinstance(labels, NeedsNamespace | Failure):
            return labels
        return self.documents.of(member.inputs, obj.after, changed=obj.after is not None, namespace=labels)

    def of_original(self, member: Member) -> Document | NeedsNamespace | Failure:
        """What it would have been sent about the object that came."""
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
