"""Values and the strings below them: the "attribute docstrings" that Python itself forgets, read from the source.

name: int = 1
\"\"\"What it is.\"\"\"
"""

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path


def documented(path: Path, owner: str | None = None) -> dict[str, str]:
    """The documentation of each value of a class, or of the module itself, by its name, in the source's order.

    Args:
        path: of the module.
        owner: the class; None: the module.

    Returns:
        For each name with an annotation or a value: the string below it, or "".

    Raises:
        LookupError: there is no such class.
    """
    body = _body(ast.parse(path.read_text()), owner, path)
    return {name: _string(after) for name, after in _values(body)}


def _body(tree: ast.Module, owner: str | None, path: Path) -> Sequence[ast.stmt]:
    if owner is None:
        return tree.body
    for statement in tree.body:
        if isinstance(statement, ast.ClassDef) and statement.name == owner:
            return statement.body
    raise LookupError(f"{path}: there is no class {owner}")


def _values(body: Sequence[ast.stmt]) -> Iterator[tuple[str, ast.stmt | None]]:
    """Each value's name, and the statement below it."""
    for statement, after in zip(body, [*body[1:], None], strict=True):
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
                yield name, after


def _string(statement: ast.stmt | None) -> str:
    match statement:
        case ast.Expr(value=ast.Constant(value=str() as text)):
            return text
        case _:
            return ""
