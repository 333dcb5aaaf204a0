"""``spec.queue`` of a Worker: the name of its queue in Redis, and the keys with which everything in it is sealed.

Which Redis it is, is the gateway's to know (``--queue-redis``): an address holds a password. The key file is required:
a client that can write to an unsealed queue decides what is admitted.
"""

import re
from typing import Final

from gateway.policies import field_errors
from gateway.policies.decoding.field import Field
from gateway.policies.workers.targets import QueueTarget

MAX_STREAM: Final = 200
"""Characters of a queue's name: a Worker's name in a namespace's, and room for more. Each key in Redis has it in it."""

FIELDS: Final = ("stream", "keyFile")
STREAM: Final = re.compile(rf"[!-z|~]{{1,{MAX_STREAM}}}")
EXPECTED: Final = f"must be 1 to {MAX_STREAM} printable ASCII characters without blanks and braces"


def read_queue(field: Field, directory: str) -> QueueTarget | None:
    """The queue; None if no object stands here. Errors are reported.

    ``directory`` is where a relative path begins: that of the file it stands in.
    """
    if not field.mapping(FIELDS):
        return None
    stream = field.get("stream").text("")
    if stream == "":
        field.get("stream").refuse(field_errors.required())
    elif stream is not None and not STREAM.fullmatch(stream):
        field.get("stream").refuse(field_errors.invalid(stream, EXPECTED))
    return QueueTarget(stream=stream or "", key_file=read_path(field.get("keyFile")), directory=directory)


def read_path(field: Field) -> str:
    """The path of a file that must be named; "" where there is none that can be used."""
    path = field.text("")
    if not path:
        if path is not None:
            field.refuse(field_errors.required())
        return ""
    if "\0" in path:
        field.refuse(field_errors.invalid(path, "must not contain a zero byte: no file can be called so"))
    return path
