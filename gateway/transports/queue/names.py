"""What a queue's things are called in Redis, and which lane a call goes by.

    {STREAM}:workers             hash: who is there, by consumer name
    {STREAM}:calls:LANE          stream, with consumer group ``workers``: one entry for each call
    {STREAM}:replies:INSTANCE    stream: answers to one gateway process

The braces make all of them one slot of a Redis Cluster, "only the substring between { and } is hashed" (Redis Cluster
specification), so that commands about several of them may be one transaction.

A document holds what the policy claims to read. While a worker is updated, some of its replicas may claim more than
others, and a question that was made for the claims of one must not be judged by the other, which would miss what it was
not shown. So calls go by **lanes**: a digest of all that a worker claims. Versions are not in it: what answers, says in
which version.
"""

import hashlib
import re
from typing import Final

from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb

GROUP: Final = "workers"
"""The consumer group of each lane."""

_LANE_BYTES: Final = 16
_HEX: Final = re.compile(r"[0-9a-f]{32}")


class Names:
    """The names of one queue.

    Args:
        stream: the queue's own name, ``spec.queue.stream``.
    """

    __slots__ = ("_prefix", "stream", "workers")

    def __init__(self, stream: str) -> None:
        self.stream = stream
        self._prefix = f"{{{stream}}}:"
        self.workers = f"{self._prefix}workers"

    def calls(self, lane: str) -> str:
        """The stream of a lane."""
        return f"{self._prefix}calls:{lane}"

    def replies(self, instance: str) -> str:
        """The stream of a gateway's replies."""
        return f"{self._prefix}replies:{instance}"


def is_identifier(text: str) -> bool:
    """Whether it can be the name of a lane, or of a gateway: 16 bytes in hexadecimal digits."""
    return _HEX.fullmatch(text) is not None


def lane_of(description: pb.DescribeResponse) -> str:
    """The lane of those who describe themselves so."""
    claims = sorted(_claims(policy) for policy in description.policies)
    digest = hashlib.sha256(b"admission-gateway lane v1")
    for claim in claims:
        digest.update(len(claim).to_bytes(8, "big") + claim)
    return digest.digest()[:_LANE_BYTES].hex()


def _claims(policy: pb.PolicyDescription) -> bytes:
    """What a policy claims, whatever its version: the same bytes for the same claims."""
    claims = pb.PolicyDescription(
        name=policy.name,
        phases=sorted(set(policy.phases)),
        inputs=policy.inputs if policy.HasField("inputs") else None,
        writes=policy.writes if policy.HasField("writes") else None,
    )
    content: bytes = claims.SerializeToString(deterministic=True)
    return content
