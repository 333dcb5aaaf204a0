"""Our modules: none is too small to stand alone, and none imports itself through others."""

import ast
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SMALLEST = 30
GENERATED = "_pb2"
SMALL = {
    "gateway.enums": "all rooms use it, so it imports nothing",
    "gateway.extras": "commands check it before they import what an extra brings",
    "gateway.certificates.pair": "serving reads pairs from files, without what makes certificates",
    "gateway.telemetry.log_level": "the command line imports it for each TAB",
}
"""Modules of fewer lines that stay by themselves, and why."""


def modules(package):
    """Each module of a package that was not generated, by its dotted name."""
    found = {}
    for path in package.rglob("*.py"):
        if GENERATED not in path.name and (path.parent / "__init__.py").exists():
            name = ".".join(path.relative_to(package.parent).with_suffix("").parts)
            found[name.removesuffix(".__init__")] = path
    return found


def packages():
    """The packages themselves."""
    return {name for name, path in modules(ROOT / "gateway").items() if path.stem == "__init__"}


def imported(path):
    """The dotted names that a module imports when it is loaded, or for its types; what a function imports is not."""
    pending = list(ast.parse(path.read_text()).body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        pending.extend(ast.iter_child_nodes(node))


def cycle(graph):
    """The modules of one cycle, the first of them again at the end; empty if there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1][::-1]
    return []


def needs(package):
    """Which of its modules each module of a package imports."""
    known = modules(package)
    return {name: {each for each in imported(path) if each in known} for name, path in known.items()}


def test_no_module_imports_itself_through_others():
    """A module can be read after those that it imports; imports for types alone count too."""
    assert cycle(needs(ROOT / "gateway")) == []


@pytest.mark.parametrize("line", ["from made import b", "from made.b import B", "if TYPE_CHECKING:\n    import made.b"])
def test_a_cycle_is_named(tmp_path, line):
    """However one of its modules is imported, a cycle is found; each module in it imports the next."""
    package = tmp_path / "made"
    package.mkdir()
    for name, text in {"__init__": "", "a": line, "b": "from made.c import C", "c": "from made.a import A"}.items():
        (package / f"{name}.py").write_text(text)
    assert set(pairwise(cycle(needs(package)))) == {("made.a", "made.b"), ("made.b", "made.c"), ("made.c", "made.a")}


def test_no_module_is_too_small():
    """What is shorter than 30 lines belongs into the module that it serves."""
    lengths = {name: len(path.read_text().splitlines()) for name, path in modules(ROOT / "gateway").items()}
    assert {name for name, length in lengths.items() if length < SMALLEST} - packages() == set(SMALL)
