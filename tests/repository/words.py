"""The words that names must not contain, and the class names that stand twice: ``make lint`` runs this.

CONTRIBUTING.md has the glossary. A name is that of a module, class, function, parameter or variable of the gateway, of
a flag or of a metric. Generated code, tests and the SDKs are exempt.
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]

FORBIDDEN: Final = frozenset(
    {
        "acquaintance",
        "agreement",
        "ask",
        "asked",
        "asker",
        "askers",
        "asking",
        "asks",
        "beat",
        "blame",
        "crowd",
        "deserted",
        "desertion",
        "everybody",
        "farewell",
        "fate",
        "fleet",
        "flooded",
        "goodbye",
        "hands",
        "heard",
        "heart",
        "hopeless",
        "impatience",
        "inability",
        "introduced",
        "introduction",
        "lateness",
        "meaningless",
        "mistake",
        "mistakes",
        "nobody",
        "occupant",
        "patience",
        "patrol",
        "patrolled",
        "patrols",
        "rivals",
        "said",
        "sayings",
        "seat",
        "seats",
        "sight",
        "sighted",
        "somebody",
        "standing",
        "standings",
        "story",
        "stranger",
        "strangers",
        "stray",
        "strayed",
        "strays",
        "succession",
        "tell",
        "told",
        "unheard",
        "walker",
        "welcome",
        "welcomes",
        "whoever",
    }
)
"""Words of which none is the field's own: each has a term in the glossary, or names nothing that a reader can guess."""

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_TEXT: Final = re.compile(r"--[a-z][a-z-]+|[a-z]+(?:_[a-z]+)+_(?:total|seconds|bytes)")


def names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Every name that a module defines, with its line: flags and metrics too, which are texts."""
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name, node.lineno
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name, node.lineno
            case ast.Constant(value=str(text)) if _TEXT.fullmatch(text):
                yield text, node.lineno


def forbidden(name: str) -> set[str]:
    """The words of a name that it must not contain."""
    return {word.lower() for word in _WORD.findall(name)} & FORBIDDEN


def classes(tree: ast.Module) -> list[str]:
    """The public classes of a module."""
    return [node.name for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]


def findings(root: Path) -> list[str]:
    """What is wrong with the names of the package at ``root``, one line each."""
    found: list[str] = []
    defined: defaultdict[tuple[str, str], list[Path]] = defaultdict(list)
    for path in sorted(root.rglob("*.py")):
        if path.stem.endswith("_pb2"):
            continue
        here, tree = path.relative_to(root), ast.parse(path.read_text(encoding="utf-8"))
        own = [(part, 1) for part in here.with_suffix("").parts]
        found += [
            f"{here}:{line}: {name}: a name must not contain {', '.join(sorted(words))}; see Words in CONTRIBUTING.md"
            for name, line in sorted({*own, *names(tree)}, key=lambda pair: (pair[1], pair[0]))
            if (words := forbidden(name))
        ]
        for name in classes(tree):
            defined[here.parts[0], name].append(here)
    return found + [_twice(name, paths) for (_, name), paths in sorted(defined.items()) if not _parallel(paths)]


def _parallel(paths: Sequence[Path]) -> bool:
    """Whether they are one, or the same module of parallel packages, as ``grpc/worker.py`` and ``queue/worker.py``."""
    return len(paths) == 1 or (len({path.name for path in paths}) == 1 and len({path.parent for path in paths}) > 1)


def _twice(name: str, paths: Sequence[Path]) -> str:
    return f"{paths[0]}: class {name} stands in {', '.join(map(str, paths[1:]))} too; give one a name of its own"


if __name__ == "__main__":
    sys.exit("\n".join(findings(ROOT / "gateway")) or 0)
