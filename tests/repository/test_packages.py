"""Our packages, as Python imports them."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = sorted(path.relative_to(ROOT) for path in (ROOT / "gateway").rglob("__init__.py"))


def imported(source):
    """The modules that are imported anywhere in this source."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or "."


@pytest.mark.parametrize("path", PACKAGES, ids=str)
def test_a_package_imports_nothing_of_ours(path):
    """Importing one module costs that module: the ``__init__`` files of the packages around it import none of ours."""
    assert [name for name in imported((ROOT / path).read_text()) if name.partition(".")[0] in {"gateway", "."}] == []
