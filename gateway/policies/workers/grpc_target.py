"""``spec.grpc`` of a Worker: where it is, how the connection is secured, and how the gateway starts it, if it does.

A worker that the gateway starts (``command``) gets the target as the address to listen on. So it has to be one
address of this machine that no other machine can reach: a Unix socket, or a port on the loopback interface. Without
one, the gateway makes a socket for the worker, in a directory that only the gateway can enter.
"""

from typing import Final

from gateway.policies import field_errors
from gateway.policies.decoding.field import Field
from gateway.policies.workers.grpc_names import EXPECTED, MAX_SOCKET_PATH, is_local, socket_path, target_hosts
from gateway.policies.workers.targets import GrpcTarget
from gateway.policies.workers.tls import read_tls

MAX_CONNECTIONS: Final = 64
"""Connections to one worker. A connection carries a hundred calls at once and more, so that a few are enough for any
rate; more are for workers behind one address, and 64 of those are plenty."""

CONNECTIONS_RANGE: Final = f"must be between 1 and {MAX_CONNECTIONS}, inclusive"

_EXPECTED_LOCAL: Final = (
    "a worker started by command listens on this machine only: unix:PATH, localhost:PORT, or one loopback address"
)
FIELDS: Final = ("target", "command", "tls", "connections")


def read_grpc(grpc: Field, directory: str, name: str) -> GrpcTarget | None:
    """How the worker of this name is reached; None if no object stands here. Errors are reported.

    ``directory`` is where its command is started: that of the file it stands in.
    """
    if not grpc.mapping(FIELDS):
        return None
    target = _target(grpc.get("target"), directory, optional=not grpc.get("command").absent)
    return GrpcTarget(
        target=target,
        command=_command(grpc.get("command"), grpc.get("target"), target),
        directory=directory,
        tls=read_tls(grpc.get("tls"), target, name),
        connections=_connections(grpc.get("connections")),
    )


def _target(field: Field, directory: str, *, optional: bool) -> str:
    if field.absent and optional:
        return ""
    target = field.text("")
    if target == "":
        field.refuse(field_errors.required())
    elif target is not None and target_hosts(target) is None:
        field.refuse(field_errors.invalid(target, EXPECTED))
    elif target and len((socket_path(target, directory) or "").encode()) > MAX_SOCKET_PATH:
        field.refuse(field_errors.invalid(target, f"in {directory} its path has more than {MAX_SOCKET_PATH} bytes"))
    else:
        return target or ""
    return ""


def _command(field: Field, target_field: Field, target: str) -> tuple[str, ...]:
    if field.absent:
        return ()
    words = field.texts()
    if words is None:
        return ()
    if not words:
        field.refuse(field_errors.required("must name a program, or be left out"))
        return ()
    for item, word in words:
        if not word:
            item.refuse(field_errors.required())
        elif "\0" in word:
            item.refuse(field_errors.invalid(word, "must not contain a zero byte: no program can be passed one"))
    if target and not is_local(target):
        target_field.refuse(field_errors.invalid(target, _EXPECTED_LOCAL))
    return tuple(word for _, word in words)


def _connections(field: Field) -> int | None:
    count = field.integer()
    if count is not None and not 1 <= count <= MAX_CONNECTIONS:
        field.refuse(field_errors.invalid(count, CONNECTIONS_RANGE))
    return count
