"""The descriptions of a worker: one object for all connections with equal bytes.

Twenty replicas of one build send the same description. It is one object, compared by identity, and is validated (its
settings, its claims) once.
"""

from collections import Counter
from typing import Final, TypeVar

from google.protobuf.message import DecodeError

from gateway.transports.field_count import parsed
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb

MOST_BYTES: Final = 1_048_576
"""Bytes of an answer to Describe or ValidateSettings: a thousand policies with a KB each. It is sent on each
connection, and decoding it blocks the loop."""

MOST_FIELDS: Final = 20_000
"""Fields of it, with those of its inner messages: a thousand policies with fifteen pointers each."""

_Response = TypeVar("_Response", pb.DescribeResponse, pb.ValidateSettingsResponse)


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
        """The version of a policy in the worker; None: the worker has no policy of that name, or more than one."""
        return self._versions.get(policy)


class Descriptions:
    """The latest descriptions of one worker, ``KEPT`` at most."""

    def __init__(self) -> None:
        self._known: dict[bytes, Description] = {}

    def of(self, content: bytes) -> Description:
        """The description in these bytes.

        Raises:
            google.protobuf.message.DecodeError: they are invalid, or beyond a limit.
        """
        known = self._known.get(content)
        if known is None:
            description = Description(read_message(pb.DescribeResponse, content))
            if len(self._known) >= KEPT:
                del self._known[next(iter(self._known))]
            known = self._known[content] = description
        return known


def read_message(kind: type[_Response], content: bytes) -> _Response:
    """The answer to Describe or ValidateSettings in these bytes.

    Raises:
        google.protobuf.message.DecodeError: they are invalid, or beyond a limit.
    """
    if len(content) > MOST_BYTES:
        raise DecodeError(f"{len(content)} bytes, more than the limit of {MOST_BYTES}")
    return parsed(kind, content, most=MOST_FIELDS, small=0)


KEPT = 8
"""Descriptions of one worker: two while it is updated, and some earlier ones. An older one that is sent again is a new
object, and is validated again."""
