"""Requests that left no object: a DELETE, a CONNECT, a request for a subresource. Nothing can judge them again, because
no log has what they were about; so each is reported for each of its policies as not judged.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from gateway.audit.results import Finding, Result
from gateway.audit.unjudged_lines import PastAdmission

LEFT_NOTHING: Final = "it was admitted unjudged, and left no object to judge again"


def past_findings(past: Iterable[PastAdmission], policies: Collection[str]) -> Iterator[Finding]:
    """The findings about those of these policies (CONFIGURATION/NAME)."""
    for each in past:
        resource = f"{each.resource}/{each.sub_resource}" if each.sub_resource else each.resource
        for name in each.policies:
            if name in policies:
                yield Finding(
                    policy=name,
                    result=Result.ERROR,
                    message=f"a {each.operation} cannot be judged again: {LEFT_NOTHING}",
                    operation=each.operation,
                    group=each.group,
                    version=each.version,
                    resource=resource,
                    kind=each.kind,
                    namespace=each.namespace,
                    name=each.name,
                    uid=each.uid,
                )
