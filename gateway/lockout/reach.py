"""Whether a webhook of the API server is called for a probe: by the matching code that judges reviews.

Three outcomes, because of two things that only a cluster knows, and which must not be guessed in favour of a promise:
the labels of namespaces (but for ``kubernetes.io/metadata.name``, which the API server sets), and the results of
``authorizer`` in matchConditions. A rule about another version than the probe's is uncertain too: it matches if the API
server serves that version.
"""

from collections.abc import Mapping

from msgspec.structs import replace

from gateway.enums import StrEnum
from gateway.lockout.probes import Probe
from gateway.matching.equivalents import EMPTY as NO_EQUIVALENTS
from gateway.matching.equivalents import SHARED_STORAGE, Equivalents, ServedResource
from gateway.matching.outcomes import MATCHED, Matched, NotMatched, Undecidable, WrongVersion
from gateway.matching.pipeline import Facts, match
from gateway.matching.selectors import Labels
from gateway.matching.versions import by_rules
from gateway.policies.metadata import NAME_LABEL
from gateway.policies.model import Policy, Selector
from gateway.review.request import GroupVersionKind, GroupVersionResource, Request


class Reach(StrEnum):
    """Whether the webhook is called. An error of its matchConditions counts as a call: under Fail it refuses too."""

    CALLED = "called"
    UNCERTAIN = "uncertain"
    NOT_CALLED = "not called"


def _event(group: str) -> ServedResource:
    resource = GroupVersionResource(group=group, version="v1", resource="events")
    return ServedResource(resource=resource, kind=GroupVersionKind(group=group, version="v1", kind="Event"))


_EQUIVALENTS = Equivalents(
    served=map(_event, SHARED_STORAGE["events"]),
    identities={(group, "events"): "events" for group in SHARED_STORAGE["events"]},
)
"""Of the probes' resources, those that every API server serves in two groups."""


def reach(policy: Policy, probe: Probe, request: Request, namespaces: Mapping[str, Labels]) -> Reach:
    """Whether the API server calls this webhook for this probe.

    Args:
        policy: a webhook as it is registered, read as a policy; or a policy of the gateway.
        probe: the request.
        request: ``probe.request()``, made once.
        namespaces: the labels of the namespaces that are known.
    """
    ruled = by_rules(policy, request, _EQUIVALENTS)
    if isinstance(ruled, NotMatched):
        ruled = by_rules(policy, request, NO_EQUIVALENTS)
    if isinstance(ruled, NotMatched):
        return Reach.NOT_CALLED
    if policy.fault is not None:
        return Reach.UNCERTAIN
    # The API server converts the object; its version is no obstacle there.
    is_certain = isinstance(ruled, Matched) or ruled.kind is not None
    known, labels = namespaces.get(probe.namespace), {NAME_LABEL: probe.namespace}
    if known is None and probe.namespace:
        requirements = policy.namespace_selector.requirements
        decidable = tuple(each for each in requirements if each.key == NAME_LABEL)
        is_certain = is_certain and decidable == requirements
        policy = replace(policy, namespace_selector=Selector(requirements=decidable))
    facts = Facts(namespaces={probe.namespace: labels if known is None else {**known, **labels}}, request={})
    matching = match(policy, MATCHED, request, lambda: request.object, facts)
    if isinstance(matching, NotMatched):
        return Reach.NOT_CALLED
    called = isinstance(matching, Matched | Undecidable | WrongVersion)
    return Reach.CALLED if called and is_certain else Reach.UNCERTAIN
