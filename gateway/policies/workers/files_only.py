"""What a Worker may be only in a file: a program that the gateway starts, and a Unix socket in its pod.

Users who may write a file of the gateway may run programs there anyway; those who may write a Worker object in the
cluster may not. So the CRD refuses these fields, and the gateway refuses them once more: the CRD may have been changed.
"""

from typing import Final

from gateway.policies import field_errors
from gateway.policies.decoding.field import Field

SOCKET: Final = "unix:"
"""What the target of a Unix socket begins with."""


_REMEDY: Final = "write this Worker into a file of --policies"

HOOK: Final = f"an object of the cluster cannot have a hook, because the gateway would run it; {_REMEDY}"
COMMAND: Final = f"an object of the cluster cannot have a command, because the gateway would run it; {_REMEDY}"
TARGET: Final = f"an object of the cluster cannot name a Unix socket, because it is in the gateway's pod; {_REMEDY}"
"""What is wrong with each."""


def refuse_files_only(spec: Field) -> None:
    """Report what a Worker object in the cluster must not have."""
    grpc = spec.get("grpc")
    if not spec.get("hook").absent:
        spec.get("hook").refuse(field_errors.forbidden(HOOK))
    if not grpc.get("command").absent:
        grpc.get("command").refuse(field_errors.forbidden(COMMAND))
    if (grpc.get("target").raw_text or "").startswith(SOCKET):
        grpc.get("target").refuse(field_errors.forbidden(TARGET))
