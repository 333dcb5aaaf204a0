"""The project's Markdown as tests see it: pages with headings, links, and blocks of code with the names they are given.

A block is called what the line before it says first: "`labels.py`:" or "`policies.yaml`, beside it:".
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from docs.generator.markdown import anchor

ROOT = Path(__file__).parents[2]

BUNDLE = (
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSGxNSUdZb0FNQ0FRSUNBUUV3QlFZREsyVndNQkl4RURBT0JnTlZCQU1NQjJW"
    "NFlXMXdiR1V3SGhjTk1qQXcKTVRBeE1EQXdNREF3V2hjTk5Ea3hNak14TURBd01EQXdXakFTTVJBd0RnWURWUVFEREFkbGVHRnRj"
    "R3hsTUNvdwpCUVlESzJWd0F5RUF3NlNpa0VJMWdWSVc3RGtMeHoxcG1ZY294a25sVDhQTUdzeXQwT2hmODJHakV6QVJNQThHCkEx"
    "VWRFd0VCL3dRRk1BTUJBZjh3QlFZREsyVndBMEVBbDRPenRlbXJZNE1JTFMxeGVNU1ZsUzJzWm16UUpHUUMKT1hqRy9FK0hzaDZX"
    "OE1qZ0NORzFHT1JjU0RFczducG4vKzJPZUllcGJKalZFYm53UjM2NkJRPT0KLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo="
)
"""The ``caBundle`` that pages show: an authority whose key is lost."""

_FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w*)$")
_HEADING = re.compile(r"^#{1,6} (?P<text>.+)$")
_CODE = re.compile(r"`[^`]*`")
_LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")
_NAMED = re.compile(r"^(?:<!-- (?P<comment>\S+): errors -->|.*?`(?P<name>[\w./-]+)`.*:)$")


_MADE = {"node_modules", "target", "vendor", ".pytest_cache"}
"""Folders that are made by builds; their pages are not the project's."""


@dataclass(frozen=True, kw_only=True)
class Block:
    """A block of code: where it stands, its language, its text, the name and the line before it."""

    page: str
    line: int
    language: str
    text: str
    before: str

    @property
    def name(self) -> str:
        """The name that the line before gives it, or nothing."""
        match = _NAMED.match(self.before)
        return (match["comment"] or match["name"]) if match else ""

    def __str__(self) -> str:
        """For the ids of tests."""
        return f"{self.page}:{self.line}"


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page: its path from the project's folder, and its text."""

    path: Path
    text: str

    @property
    def name(self) -> str:
        """For the ids of tests."""
        return self.path.as_posix()

    def lines(self) -> Iterator[tuple[int, str, bool]]:
        """Number, text, and whether it is code, of each line."""
        inside = False
        for number, line in enumerate(self.text.splitlines(), 1):
            fence = line.strip().startswith("```")
            yield number, line, inside or fence
            inside ^= fence

    def blocks(self) -> Iterator[Block]:
        """The blocks of code."""
        opened: re.Match[str] | None = None
        start, before, body = 0, "", list[str]()
        for number, line in enumerate(self.text.splitlines(), 1):
            if opened is None and (match := _FENCE.match(line)):
                opened, start, body = match, number, []
            elif opened is not None and line.strip() == "```":
                text = "".join(f"{each.removeprefix(opened['indent'])}\n" for each in body)
                yield Block(page=self.name, line=start, language=opened["language"], text=text, before=before)
                opened = None
            elif opened is not None:
                body.append(line)
            elif line.strip():
                before = line.strip()

    def anchors(self) -> set[str]:
        """What can be linked to in this page; of two equal headings the second gets a number."""
        found: set[str] = set()
        for _, line, is_code in self.lines():
            if not is_code and (match := _HEADING.match(line)):
                name = base = anchor(match["text"].replace("`", ""))
                number = 0
                while name in found:
                    number += 1
                    name = f"{base}-{number}"
                found.add(name)
        return found

    def links(self) -> list[str]:
        """The targets of all links and pictures outside of code."""
        prose = "\n".join(_CODE.sub("`code`", line) for _, line, is_code in self.lines() if not is_code)
        return [match["target"] for match in _LINK.finditer(prose)]


@cache
def pages() -> dict[str, Page]:
    """All pages of the project by name."""
    paths = [
        *ROOT.glob("*.md"),
        *(
            path
            for folder in ("docs", "workers", "examples", "proto", "deploy")
            for path in ROOT.glob(f"{folder}/**/*.md")
            if not _MADE & set(path.parts)
        ),
    ]
    found = [Page(path=path.relative_to(ROOT), text=path.read_text()) for path in sorted(paths)]
    return {page.name: page for page in found}


def blocks(*languages: str, pages_of: str = "") -> list[Block]:
    """All blocks in these languages, in the pages whose name begins so."""
    found = (block for name, page in pages().items() if name.startswith(pages_of) for block in page.blocks())
    return [block for block in found if block.language in languages]


def named(page: str, name: str) -> str:
    """The text of the block that a page calls so."""
    return next(block.text for block in pages()[page].blocks() if block.name == name)
