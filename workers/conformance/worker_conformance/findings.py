"""What a check raises: the contract is broken, or the check cannot be made here.

A check that returns has passed. Whatever else it raises is a mistake of the kit's and is reported as one, never as
the worker's.
"""

from collections.abc import Iterable

from google.protobuf import text_format
from google.protobuf.message import Message

SHOWN = 600
"""Characters of a value in a report: some ten lines, enough to see what it is."""


class BrokenRuleError(Exception):
    """The worker does something else than the contract says.

    Args:
        expected: what the contract expects here, as a phrase.
        observed: what the worker did instead.
    """

    def __init__(self, expected: str, observed: str) -> None:
        super().__init__(f"expected {expected}; observed {observed}")
        self.expected = expected
        self.observed = observed


class NotCheckableError(Exception):
    """The check cannot be made with this worker; the text says why. The contract allows that."""


class StartError(Exception):
    """The kit could not begin at all: no worker, or none that can be reached. For whoever runs it."""


def expect(condition: object, expected: str, observed: str) -> None:
    """Go on only if it holds.

    Raises:
        BrokenRuleError: it does not.
    """
    if not condition:
        raise BrokenRuleError(expected, observed)


def shown(value: object) -> str:
    """A value as a report shows it: a message in protobuf's text format on one line, anything else as Python writes
    it, and its beginning if it is long.
    """
    if isinstance(value, Message):
        text = text_format.MessageToString(_shortened(value), as_one_line=True, as_utf8=True)
        text = f"{type(value).__name__} {{{text}}}"
    else:
        text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}... ({len(text)} characters)"


def listed(values: Iterable[object]) -> str:
    """A few values as a phrase; "nothing" for none."""
    return shown(", ".join(str(value) for value in values) or "nothing")


def _shortened(message: Message) -> Message:
    """The message, without megabytes of which nobody would see more than the beginning."""
    return message if message.ByteSize() <= 10 * SHOWN else type(message).FromString(_cut(message))


def _cut(message: Message) -> bytes:
    short = type(message)()
    short.CopyFrom(message)
    for field, value in short.ListFields():
        if isinstance(value, str | bytes) and len(value) > SHOWN:
            setattr(short, field.name, value[:SHOWN])
        elif isinstance(value, Message):
            value.ParseFromString(_cut(value))
    return short.SerializeToString()
