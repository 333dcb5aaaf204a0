"""gateway/cel is a package of its own: what it imports, and what it takes from where it is installed."""

import ast
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
MODULES = sorted((ROOT / "gateway" / "cel").rglob("*.py"))

THIRD_PARTIES = {"msgspec": "msgspec", "re2": "google-re2", "cel_expr_python": "cel-expr-python"}
"""What it may import, and the distribution that brings it. tzdata is data: zoneinfo reads it."""


def imports(path):
    """The modules that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module


IMPORTED = {name for path in MODULES for name in imports(path)}


def test_of_ours_it_imports_itself_and_limits():
    """So that it can be used without the gateway."""
    ours = {name for name in IMPORTED if name.split(".")[0] == "gateway"}
    assert {name for name in ours if name != "gateway.cel" and not name.startswith("gateway.cel.")} == {
        "gateway.bounds"
    }


def test_of_others_it_imports_three():
    """One of them only if it is installed."""
    tops = {name.split(".")[0] for name in IMPORTED} - sys.stdlib_module_names - {"gateway"}
    assert tops == THIRD_PARTIES.keys()


def test_what_it_needs_is_declared():
    """As dependencies, or as an extra."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = " ".join([*project["dependencies"], *project["optional-dependencies"]["cel-words"]])
    assert all(name in declared for name in (*THIRD_PARTIES.values(), "tzdata"))


def test_its_readme_names_what_it_needs():
    """Each with a link."""
    readme = (ROOT / "gateway" / "cel" / "README.md").read_text()
    assert all(f"pypi.org/project/{name}/" in readme for name in (*THIRD_PARTIES.values(), "tzdata"))


def test_packages_import_nothing():
    """A name is imported from the module that defines it."""
    assert [path for path in MODULES if path.name == "__init__.py" and [*imports(path)]] == []


def test_no_class_and_no_module_has_the_name_of_another():
    """Within the package."""
    classes = [
        node.name
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    modules = [path.stem for path in MODULES if path.stem != "__init__"]
    assert len(classes) == len(set(classes))
    assert len(modules) == len(set(modules))


def test_no_module_imports_itself_through_others():
    """The modules can be read in an order in which each needs only those before it."""
    names = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in MODULES}
    needs = {
        name: {each for each in _candidates(path) if each in names and each != name} for name, path in names.items()
    }
    while ready := {name for name, others in needs.items() if not others & needs.keys()}:
        needs = {name: others for name, others in needs.items() if name not in ready}
    assert needs == {}


def _candidates(path):
    """What an import may mean: a module, or a module of the package that it names."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
