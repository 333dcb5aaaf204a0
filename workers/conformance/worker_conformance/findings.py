"""What a check raises: the worker breaks the contract, or the check cannot run with this worker.

A check that returns has passed. Any other exception is an error of the kit, and is reported as one.
"""

from collections.abc import Iterable

from google.protobuf import text_format
from google.protobuf.message import Message

SHOWN = 600
"""Characters of a value in a report: some ten lines."""


class BrokenRuleError(Exception):
    """The worker does not do what the contract requires.

    Args:
        expected: what the contract requires here, as a phrase.
        observed: what the worker did instead.
    """

    def __init__(self, expected: str, observed: str) -> None:
        super().__init__(f"expected {expected}; observed {observed}")
        self.expected = expected
        self.observed = observed


class NotCheckableError(Exception):
    """The check cannot run with this worker, for the reason in the text. The contract allows that."""


class StartError(Exception):
    """The kit cannot run: an invalid option, or no worker that can be reached."""


def expect(condition: object, expected: str, observed: str) -> None:
    """Raise an error unless the condition is true.

    Raises:
        BrokenRuleError: it is not.
    """
    if not condition:
        raise BrokenRuleError(expected, observed)


def shown(value: object) -> str:
    """A value in a report: a message in protobuf's text format on one line, a string as it is, others by ``repr``; only
    its beginning if it is long.
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
    """The message with long fields cut to their beginning."""
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
