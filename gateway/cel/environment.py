"""Compile expressions: the package's front door.

An ``Environment`` is what cel-go calls ``cel.Env``: declared variables with their types, and the functions and macros
that Kubernetes has had in its CEL since a version. ``compile`` parses, checks types, checks constants and plans, and
gives a ``Program``; all errors that the API server reports are reported, in its words
(k8s.io/apiserver/pkg/admission/plugin/cel/compile.go): ``compilation failed: ...`` with all places, ``must evaluate to
bool but got ...``, ``program instantiation failed: ...``.

    >>> environment = Environment({"name": "string"})
    >>> program = environment.compile("name.startsWith('kube-')", result="bool")
    >>> program.evaluate({"name": "kube-system"})
    Evaluation(outcome=True, cost=3)
"""

from collections.abc import Mapping
from typing import Final

from gateway.cel.checker.checker import check
from gateway.cel.checker.declarations import declare
from gateway.cel.checker.validators import validate
from gateway.cel.interpreter.planner import Uninstantiable, plan
from gateway.cel.libraries.catalog import functions_of
from gateway.cel.parser.ast import Node
from gateway.cel.parser.errors import describe
from gateway.cel.parser.macros import macros_of
from gateway.cel.parser.parser import parse
from gateway.cel.parser.syntax_errors import reworded
from gateway.cel.program import Program
from gateway.cel.values.types import DYN, LARGEST_TYPE, Type, TypeTooLarge, written
from gateway.cel.versions import NEWEST, OLDEST, Version

_FAILED: Final = "compilation failed: "
_TOO_DEEP: Final = "ERROR: <input>:-1:0: max recursion depth exceeded"
_TOO_LARGE: Final = f"ERROR: <input>:-1:0: a type exceeds the limit of {LARGEST_TYPE} types within it"


class CompileError(Exception):
    """The text is no expression of this environment: the reasons, in the API server's words."""


class Environment:
    """What expressions can name.

    Args:
        variables: the type of each variable, as it is written in CEL: ``dyn``, ``string``, ``list(int)``,
            ``map(string, dyn)``, ``timestamp``, or the name of a message. Decoded JSON of any shape is ``dyn``.
        messages: types with members, and the types of these. At run time such a value is a dict.
        version: of Kubernetes. Functions and macros that it does not have are errors. (kube-apiserver compiles new
            expressions for the version before its own, so that it can be rolled back.) Only functions and macros
            depend on it: costs and messages are those of the newest.

    Raises:
        ValueError: a type that is not written correctly, or a version that is not known.
    """

    def __init__(
        self,
        variables: Mapping[str, str],
        *,
        messages: Mapping[str, Mapping[str, str]] | None = None,
        version: Version = NEWEST,
    ) -> None:
        if not OLDEST <= version <= NEWEST:
            raise ValueError(f"Kubernetes {version} is not known: versions are from {OLDEST} to {NEWEST}")
        self._declarations = declare(variables, messages or {}, functions_of(version))
        self._macros = macros_of(version)

    def compile(self, expression: str, *, result: str = "dyn") -> Program:
        """The program of an expression.

        Args:
            expression: the text.
            result: the type that the expression must have; ``dyn`` allows all.

        Raises:
            CompileError: what is wrong with it. No other exception is raised, whatever the text is.
        """
        try:
            return self._compile(expression, written(result))
        except RecursionError:
            raise CompileError(_FAILED + _TOO_DEEP) from None
        except TypeTooLarge:
            raise CompileError(_FAILED + _TOO_LARGE) from None

    def parse(self, expression: str) -> Node | None:
        """The syntax tree of an expression that compiles."""
        return parse(expression, self._macros).tree

    def _compile(self, expression: str, wanted: Type) -> Program:
        parsed = parse(expression, self._macros)
        if parsed.tree is None:
            raise CompileError(_FAILED + reworded(expression, parsed.problems))
        checked = check(parsed.tree, self._declarations)
        problems = checked.problems or validate(parsed.tree, checked)
        if problems:
            raise CompileError(_FAILED + describe(expression, problems))
        if wanted not in {DYN, checked.type}:
            raise CompileError(f"must evaluate to {wanted} but got {checked.type}")
        try:
            planned = plan(parsed.tree, checked)
        except Uninstantiable as error:
            raise CompileError(f"program instantiation failed: {error}") from error
        return Program(
            expression=expression,
            result=checked.type,
            variables=planned.variables,
            _run=planned.run,
            _locals=(None,) * planned.locals,
        )
