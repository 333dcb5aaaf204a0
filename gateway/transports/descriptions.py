"""What a worker says of itself, once for all connections on which it is said in the same words.

Twenty replicas of one build say the same: their description is one object, compared by identity, and whatever follows
from it (settings validated, claims held against grants) is worked out once.
"""

from collections import Counter
from typing import Final, TypeVar

from google.protobuf.message import DecodeError

from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from gateway.transports.wire import parsed

MOST_BYTES: Final = 1_048_576
"""Of what a worker says of itself, or of settings: a thousand policies with a KB each. Whoever says more says it anew
on each connection, and everybody waits while it is read."""

MOST_FIELDS: Final = 20_000
"""In it, those of the messages in it included: a thousand policies with fifteen pointers each."""

Words = TypeVar("Words", pb.DescribeResponse, pb.ValidateSettingsResponse)


class Description:
    """A DescribeResponse. Made by ``Descriptions.of`` only."""

    __slots__ = ("_versions", "message")

    def __init__(self, message: pb.DescribeResponse) -> None:
        self.message = message
        names = Counter(entry.name for entry in message.policies)
        self._versions = {
            entry.name: entry.version or message.version for entry in message.policies if names[entry.name] == 1
        }

    def version_of(self, policy: str) -> str | None:
        """In which version it holds a policy; None: it does not, or more than once."""
        return self._versions.get(policy)


class Descriptions:
    """Those of one worker that somebody still refers to; a few at most, for versions come and go."""

    def __init__(self) -> None:
        self._known: dict[bytes, Description] = {}

    def of(self, content: bytes) -> Description:
        """The description that these bytes are.

        Raises:
            google.protobuf.message.DecodeError: they are none, or say more than anybody reads.
        """
        known = self._known.get(content)
        if known is None:
            description = Description(read_words(pb.DescribeResponse, content))
            if len(self._known) >= KEPT:
                del self._known[next(iter(self._known))]
            known = self._known[content] = description
        return known


def read_words(kind: type[Words], content: bytes) -> Words:
    """What a worker says of itself, or of settings.

    Raises:
        google.protobuf.message.DecodeError: they are none, or say more than anybody reads.
    """
    if len(content) > MOST_BYTES:
        raise DecodeError(f"{len(content)} bytes, and at most {MOST_BYTES} are read")
    return parsed(kind, content, most=MOST_FIELDS, small=0)


KEPT = 8
"""Descriptions of one worker: two while it is updated, and what it said lately. An older one that comes again is
another object, and what follows from it is worked out again."""
