"""The keys of a queue in Redis, and the lane of a call.

    {STREAM}:workers             hash: the presences, by consumer name
    {STREAM}:calls:LANE          request stream with consumer group ``workers``: one entry for each call
    {STREAM}:replies:INSTANCE    reply stream: replies to one gateway process

The braces put all of them into one slot of a Redis Cluster, "only the substring between { and } is hashed" (Redis
Cluster specification), so that commands about several of them may be one transaction.

A document contains what the policy claims to read. While a worker is updated, its replicas may have different claims. A
call that was made for one set of claims must not be handled with another: the document would lack what that one reads.
So each set of claims has its own request stream, a **lane**, which is named by a digest of the claims. Versions are not
part of it: each outcome carries its version.
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
        stream: the queue's name, ``spec.queue.stream``.
    """

    __slots__ = ("_prefix", "stream", "workers")

    def __init__(self, stream: str) -> None:
        self.stream = stream
        self._prefix = f"{{{stream}}}:"
        self.workers = f"{self._prefix}workers"

    def calls(self, lane: str) -> str:
        """The request stream of a lane."""
        return f"{self._prefix}calls:{lane}"

    def replies(self, instance: str) -> str:
        """The reply stream of a gateway process."""
        return f"{self._prefix}replies:{instance}"


def is_identifier(text: str) -> bool:
    """Whether it can name a lane or a gateway process: 16 bytes in hexadecimal digits."""
    return _HEX.fullmatch(text) is not None


def lane_of(description: pb.DescribeResponse) -> str:
    """The lane of workers with this description."""
    claims = sorted(_claims(policy) for policy in description.policies)
    digest = hashlib.sha256(b"admission-gateway lane v1")
    for claim in claims:
        digest.update(len(claim).to_bytes(8, "big") + claim)
    return digest.digest()[:_LANE_BYTES].hex()


def _claims(policy: pb.PolicyDescription) -> bytes:
    """A policy's claims without its version: the same bytes for the same claims."""
    claims = pb.PolicyDescription(
        name=policy.name,
        phases=sorted(set(policy.phases)),
        inputs=policy.inputs if policy.HasField("inputs") else None,
        writes=policy.writes if policy.HasField("writes") else None,
    )
    content: bytes = claims.SerializeToString(deterministic=True)
    return content
