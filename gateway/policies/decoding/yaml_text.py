"""YAML 1.1 as PyYAML's SafeLoader reads it, with three differences: what JSON cannot express is rejected, timestamps
remain strings, and nothing is built before it is counted.

The parser's events are used, not its nodes: libyaml composes nodes by recursion in C, where a deep text ends the
process.
"""

from collections.abc import Callable, Iterator
from typing import Final

import yaml
from yaml.constructor import SafeConstructor
from yaml.resolver import Resolver

from gateway.policies.decoding.nodes import MAX_NUMBER, MERGE, Broken, Builder, Node, Scalar, TextError

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's parser is ten times as fast as the one in Python, which reads the same language."""

_TAG: Final = "tag:yaml.org,2002:"
_MAPPING: Final = _TAG + "map"
_SEQUENCE: Final = _TAG + "seq"
_TEXTS: Final = frozenset({_TAG + "str", _TAG + "timestamp", _TAG + "value"})
_FIXED: Final[dict[str, Broken | None]] = {_TAG + "null": None, _TAG + "merge": MERGE}

_RESOLVER: Final = Resolver()
_CONSTRUCTOR: Final = SafeConstructor()
_NUMBERS: Final[dict[str, Callable[[yaml.ScalarNode], Scalar]]] = {
    _TAG + "bool": _CONSTRUCTOR.construct_yaml_bool,
    _TAG + "int": _CONSTRUCTOR.construct_yaml_int,
    _TAG + "float": _CONSTRUCTOR.construct_yaml_float,
}


def read_yaml(text: str) -> Iterator[Node]:
    """The documents of a YAML stream, in order; an empty one is a node with the value None.

    Raises:
        TextError: where the text stops being YAML, or is too deep or too large. The documents before were yielded.
    """
    builder = Builder()
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            if isinstance(event, yaml.DocumentStartEvent):
                builder.next(line=_line(event))
            elif isinstance(event, yaml.DocumentEndEvent):
                if builder.root is not None:
                    yield builder.root
            else:
                _take(builder, event)
    except yaml.YAMLError as error:
        raise _text_error(error, text) from error


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark is not None else 1


def _take(builder: Builder, event: yaml.Event) -> None:
    line = _line(event)
    match event:
        case yaml.ScalarEvent():
            builder.scalar(_scalar(event), line=line, anchor=event.anchor)
        case yaml.MappingStartEvent():
            builder.open(mapping=True, line=line, anchor=event.anchor, broken=_refusal(event.tag, _MAPPING))
        case yaml.SequenceStartEvent():
            builder.open(mapping=False, line=line, anchor=event.anchor, broken=_refusal(event.tag, _SEQUENCE))
        case yaml.AliasEvent():
            builder.alias(str(event.anchor), line=line)
        case yaml.CollectionEndEvent():
            builder.close()
        case _:
            """The stream's start and end."""


def _refusal(tag: str | None, accepted: str) -> Broken | None:
    return None if tag in {None, "!", accepted} else Broken(message=f"has the tag {tag!r}, which JSON has no value for")


def _scalar(event: yaml.ScalarEvent) -> Scalar:
    tag = event.tag
    if tag is None or tag == "!":
        tag = str(_RESOLVER.resolve(yaml.ScalarNode, event.value, event.implicit))  # type: ignore[no-untyped-call]  # stubs
    if tag in _TEXTS:
        return event.value
    if tag in _FIXED:
        return _FIXED[tag]
    construct = _NUMBERS.get(tag)
    if construct is None:
        return Broken(message=f"has the tag {tag!r}, which JSON has no value for")
    if len(event.value) > MAX_NUMBER:
        return Broken(message=f"is a number of more than {MAX_NUMBER} characters")
    try:
        return construct(yaml.ScalarNode(tag, event.value))
    except (ValueError, KeyError, IndexError, OverflowError):
        return Broken(message=f"has the tag {tag!r}, but is not written like one")


def _text_error(error: yaml.YAMLError, text: str) -> TextError:
    """PyYAML's own words, in one line."""
    if isinstance(error, yaml.MarkedYAMLError):
        words = ": ".join(part for part in (error.context, error.problem) if part)
        mark = error.problem_mark or error.context_mark
        return TextError(mark.line + 1 if mark is not None else 1, words)
    if isinstance(error, yaml.reader.ReaderError):
        line = text.count("\n", 0, error.position) + 1
        return TextError(line, f"unacceptable character: {error.reason}")
    return TextError(1, " ".join(str(error).split()))
