"""proto.md: the worker's contract, from the comments of its .proto file.

The file is written in one form, which is all that is read here: one declaration on a line, its comment in whole lines
above it. A line that is neither is an error, so that nothing is left out of the page without anybody noticing.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from docs.generator.markdown import anchor, code, literals, prose, table

FILE: Final = Path("proto") / "admission" / "worker" / "v1" / "worker.proto"

_COMMENT: Final = re.compile(r"//\s?(?P<text>.*)")
_FILE_LEVEL: Final = re.compile(r"(syntax|package|import)\b")
_BLOCK: Final = re.compile(r"(?P<kind>service|message|enum|oneof) (?P<name>\w+) \{(?P<end>\})?")
_RPC: Final = re.compile(r"rpc (?P<name>\w+)\((?P<asks>[^)]+)\) returns \((?P<answers>[^)]+)\);")
_FIELD: Final = re.compile(r"(?P<type>(?:repeated |optional |map<string, )?[\w.]+>?) (?P<name>\w+) = (?P<number>\d+);")
_VALUE: Final = re.compile(r"(?P<name>[A-Z_]+) = (?P<number>\d+);")

_HEAD: Final = prose(f"""
    # The worker's contract

    All that a worker in any language has to implement: the messages of [{FILE}](../../{FILE}), with their comments. The
    [SDKs](../../workers/README.md) implement all of it.
""")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Declaration:
    """A block, a field, a value or a call; ``oneof`` names the one that a field belongs to."""

    kind: str
    name: str
    comment: str
    type: str = ""
    number: str = ""
    oneof: str = ""
    members: "list[_Declaration]" = field(default_factory=list)


def page(root: Path) -> str:
    """The page's text."""
    text = (root / FILE).read_text()
    head, declarations = _read(text)
    blocks = list(_blocks(declarations))
    known = {name.rpartition(".")[2]: name for name, _ in blocks}
    return (
        "\n\n".join(
            [
                _HEAD,
                head,
                *(part for name, block in blocks for part in _section(name, block, known)),
            ]
        )
        + "\n"
    )


def _read(text: str) -> tuple[str, list[_Declaration]]:
    """The comment of the whole file, and its blocks."""
    head = ""
    comment: list[str] = []
    root: list[_Declaration] = []
    stack: list[list[_Declaration]] = [root]
    oneofs: list[str] = [""]
    for number, line in enumerate(map(str.strip, text.splitlines()), 1):
        if match := _COMMENT.fullmatch(line):
            comment.append(match["text"])
        elif _FILE_LEVEL.match(line):
            head = head or _joined(comment)
            comment = []
        elif match := _BLOCK.fullmatch(line):
            block = _Declaration(kind=match["kind"], name=match["name"], comment=_joined(comment))
            comment = []
            stack[-1].append(block)
            if not match["end"]:
                # The fields of a oneof are its message's: only their names say that they exclude each other.
                stack.append(stack[-1] if block.kind == "oneof" else block.members)
                oneofs.append(block.name if block.kind == "oneof" else "")
        elif line == "}":
            stack.pop()
            oneofs.pop()
        elif line:
            stack[-1].append(_member(line, _joined(comment), oneofs[-1], number))
            comment = []
    return head, root


def _member(line: str, comment: str, oneof: str, number: int) -> _Declaration:
    if match := _RPC.fullmatch(line):
        return _Declaration(
            kind="rpc", name=match["name"], comment=comment, type=f"{match['asks']} → {match['answers']}"
        )
    if match := _FIELD.fullmatch(line):
        return _Declaration(
            kind="field",
            name=match["name"],
            comment=comment,
            type=match["type"],
            number=match["number"],
            oneof=oneof,
        )
    if match := _VALUE.fullmatch(line):
        return _Declaration(kind="value", name=match["name"], comment=comment, number=match["number"])
    raise ValueError(f"{FILE}:{number}: a line that this reader does not know: {line!r}")


def _joined(lines: list[str]) -> str:
    """A comment's lines as Markdown: lists keep their lines, everything else is one line for each paragraph."""
    paragraphs: list[list[str]] = [[]]
    for line in lines:
        if not line.strip():
            paragraphs.append([])
        elif re.match(r"\s*(\*|\d+\.) ", line) and paragraphs[-1]:
            paragraphs.append([line.strip()])
        else:
            paragraphs[-1].append(line.strip())
    return "\n\n".join(literals(" ".join(paragraph)) for paragraph in paragraphs if paragraph)


def _blocks(declarations: list[_Declaration], owner: str = "") -> Iterator[tuple[str, _Declaration]]:
    """All services, messages and enums with their full names, outer ones first."""
    for each in declarations:
        if each.kind in {"service", "message", "enum"}:
            name = f"{owner}.{each.name}" if owner else each.name
            yield name, each
            yield from _blocks(each.members, name)


def _section(name: str, block: _Declaration, known: dict[str, str]) -> Iterator[str]:
    yield f"## {name}"
    if block.comment:
        yield block.comment
    members = [each for each in block.members if each.kind in {"rpc", "field", "value"}]
    oneofs = {each.name: each.comment for each in block.members if each.kind == "oneof"}
    head, rows = _table(block.kind, members, known)
    yield table(head, rows) if rows else "It has no fields."
    for oneof, comment in oneofs.items():
        names = ", ".join(code(each.name) for each in members if each.oneof == oneof)
        yield f"At most one of {names} is set (`oneof {oneof}`). {comment}".rstrip()


def _table(
    kind: str, members: list[_Declaration], known: dict[str, str]
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The head and the rows for what a block holds."""
    match kind:
        case "service":
            rows = [(code(each.name), _typed(each.type, known), each.comment) for each in members]
            return ("Call", "Messages", "Meaning"), list[tuple[str, ...]](rows)
        case "enum":
            return ("Value", "Number", "Meaning"), [(code(each.name), each.number, each.comment) for each in members]
        case _:
            fields = [(code(each.name), _typed(each.type, known), each.number, each.comment) for each in members]
            return ("Field", "Type", "Number", "Meaning"), list[tuple[str, ...]](fields)


def _typed(text: str, known: dict[str, str]) -> str:
    """A type, its messages linked."""
    return " ".join(
        f"[{word}](#{anchor(known[word])})" if word in known else word.replace("<", "&lt;") for word in text.split()
    )
