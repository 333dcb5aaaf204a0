"""Reads a review with many values, and makes its documents, in slices: an event loop serves others in between.

The engine would do the same work in its first event, in one piece. What is not needed after all (a policy that does not
match, a mutating policy that is called with a changed object) is lost; what needs a lookup is left to the engine.
"""

from collections.abc import Iterator

from gateway.documents.documents import DocumentBuilder
from gateway.engine.plan import Member, Plan
from gateway.policies.model import Phase
from gateway.review.request import Request, ReviewError


def needs_values(request: Request, plan: Plan) -> bool:
    """Whether ``request`` may be parsed: a policy reads parts of its object, or may change it."""
    return any(plan.phase is Phase.MUTATING or _parses(member) for member in _callable(request, plan))


def preparing(request: Request, plan: Plan, documents: DocumentBuilder) -> Iterator[None]:
    """Put into ``request`` the values, and into ``documents`` the documents, that ``plan`` needs of the request as it
    came. Yields after each slice: one member parsed, or one document made. Raises nothing: the engine meets each error
    again.
    """
    try:
        for member in _callable(request, plan):
            if _parses(member):
                # Each is kept where it came from.
                _ = request.object
                yield
                _ = request.old_object
                yield
            if not member.inputs.needs_namespace:
                documents.of(member.inputs, None, changed=False)
                yield
    except ReviewError:
        return


def _callable(request: Request, plan: Plan) -> Iterator[Member]:
    """The policies with a rule about the request that can be called."""
    if plan.unavailable is None:
        for index in plan.index.concerned(request):
            member = plan.members[index]
            if member.unavailable is None:
                yield member


def _parses(member: Member) -> bool:
    """Whether the object is parsed to match the policy, or for its document."""
    return not member.unconditional or DocumentBuilder.parses(member.inputs)
