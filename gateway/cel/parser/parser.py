"""Text -> tree: cel-go's grammar (CEL.g4), by precedence climbing.

::

    expr    = or ["?" or ":" expr]          relation = (< <= > >= == != in), left to right
    or      = and {"||" and}                 sum      = (+ -), left to right
    and     = relation {"&&" relation}       product  = (* / %), left to right
    unary   = member | "!"+ member | "-"+ member
    member  = primary {"." ["?"] name | "." name "(" ... ")" | "[" ["?"] expr "]"}

``&&`` and ``||`` are kept as balanced trees, as cel-go does: a thousand of them are ten levels deep. A minus directly
before a number belongs to the number, so that -9223372036854775808 can be written.

The parser of cel-expr-python does not serve: it stops at 32 levels where Kubernetes allows 250, and accepts names in
backticks where Kubernetes does not. Its messages for syntax errors are cel-go's, so ``syntax_errors`` uses them.
"""

from collections.abc import Callable
from typing import Final, TypeVar

from gateway.bounds import DEEPEST
from gateway.cel.parser import ast
from gateway.cel.parser.ast import Parsed
from gateway.cel.parser.errors import Problem
from gateway.cel.parser.lexer import Token, Unlexable, tokenize
from gateway.cel.parser.literals import NUMBERS, unquote, unquote_bytes
from gateway.cel.parser.macros import Macros, Misuse, expand

_Item = TypeVar("_Item")

_LONGEST: Final = 100_000
"""Code points (cel-go's expressionSizeCodePointLimit)."""

_DEEPEST_NESTING: Final = 250
"""Expressions within expressions, and operators within operators (cel-go's maxRecursionDepth). Both are below what
our own walks survive (``DEEPEST``)."""

_RESERVED: Final = frozenset(
    {
        *("as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in"),
        *("let", "loop", "namespace", "null", "package", "return", "true", "var", "void", "while"),
    }
)

_BINARY: Final = {
    "||": 1,
    "&&": 2,
    **dict.fromkeys(("<", "<=", ">", ">=", "==", "!=", "in"), 3),
    **dict.fromkeys(("+", "-"), 4),
    **dict.fromkeys(("*", "/", "%"), 5),
}
_EXPECTED: Final = {"end": "<EOF>", "name": "IDENTIFIER", "quoted": "ESC_IDENTIFIER"}
_LOGICAL: Final = frozenset({"||", "&&"})


class _Unparsable(Exception):  # noqa: N818 - it is named after what the text is
    """The token at which the text stops being CEL."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


def parse(expression: str, macros: Macros) -> Parsed:
    """The tree of an expression, macros expanded, or its problems in cel-go's words where they are easy to have."""
    if len(expression) > _LONGEST:
        message = f"expression code point size exceeds limit: size: {len(expression)}, limit {_LONGEST}"
        return Parsed(tree=None, problems=(Problem(offset=None, message=message),))
    try:
        tokens = list(tokenize(expression))
    except Unlexable as error:
        message = f"Syntax error: token recognition error at: '{expression[error.offset]}'"
        return Parsed(tree=None, problems=(Problem(offset=error.offset, message=message),))
    parser = _Parser(tokens, macros)
    try:
        node = parser.whole()
    except _Unparsable as error:
        return Parsed(tree=None, problems=(*parser.problems, error.problem))
    if parser.problems:
        return Parsed(tree=None, problems=tuple(parser.problems))
    depth, operators = ast.depth(node)
    if depth > DEEPEST or operators > _DEEPEST_NESTING:
        return Parsed(tree=None, problems=(Problem(offset=None, message="max recursion depth exceeded"),))
    return Parsed(tree=node)


class _Parser:
    """One walk over the tokens. Errors that do not stop the walk are collected in ``problems``."""

    def __init__(self, tokens: list[Token], macros: Macros) -> None:
        self.problems: list[Problem] = []
        self._macros = macros
        self._tokens = tokens
        self._index = 0
        self._nesting = 0

    def whole(self) -> ast.Node:
        node = self._expression()
        self._take("end")
        return node

    # ------------------------------------------------------------------------------------------ tokens
    @property
    def _next(self) -> Token:
        return self._tokens[self._index]

    def _skip(self, kind: str) -> bool:
        if self._tokens[self._index].kind != kind:
            return False
        self._index += 1
        return True

    def _take(self, *kinds: str) -> Token:
        token = self._next
        if token.kind not in kinds:
            raise self._unexpected(" or ".join(_EXPECTED.get(kind, f"'{kind}'") for kind in kinds))
        self._index += 1
        return token

    def _unexpected(self, expected: str) -> _Unparsable:
        found = self._next.text or "<EOF>"
        message = f"Syntax error: mismatched input '{found}' expecting {expected}"
        return _Unparsable(Problem(offset=self._next.offset, message=message))

    def _problem(self, offset: int, message: str) -> None:
        self.problems.append(Problem(offset=offset, message=message))

    # --------------------------------------------------------------------------------------- operators
    def _expression(self) -> ast.Node:
        self._nesting += 1
        if self._nesting > _DEEPEST_NESTING:
            message = f"expression recursion limit exceeded: {_DEEPEST_NESTING}"
            raise _Unparsable(Problem(offset=None, message=message))
        node = self._climb(1)
        if self._next.kind == "?":
            mark = self._take("?")
            then = self._climb(1)
            self._take(":")
            otherwise = self._expression()
            node = ast.Call(offset=mark.offset, function="_?_:_", arguments=(node, then, otherwise))
        self._nesting -= 1
        return node

    def _climb(self, level: int) -> ast.Node:
        left = self._unary()
        while (strength := _BINARY.get(self._next.kind, 0)) >= level:
            if self._next.kind in _LOGICAL:
                left = self._chain(left, self._next.kind, strength)
                continue
            operator = self._take(self._next.kind)
            right = self._climb(strength + 1)
            function = "@in" if operator.kind == "in" else f"_{operator.kind}_"
            left = ast.Call(offset=operator.offset, function=function, arguments=(left, right))
        return left

    def _chain(self, first: ast.Node, kind: str, strength: int) -> ast.Node:
        terms, offsets = [first], []
        while self._next.kind == kind:
            offsets.append(self._take(kind).offset)
            terms.append(self._climb(strength + 1))
        return _balance(f"_{kind}_", terms, offsets)

    def _unary(self) -> ast.Node:
        first = self._next
        if first.kind not in {"!", "-"}:
            return self._members(self._primary())
        following = self._tokens[self._index + 1].kind if first.kind == "-" else ""
        if following in {"int", "float"}:
            return self._members(self._primary())
        count = 0
        while self._skip(first.kind):
            count += 1
        node = self._members(self._primary())
        if count % 2 == 0:
            return node
        return ast.Call(offset=first.offset, function="!_" if first.kind == "!" else "-_", arguments=(node,))

    # ----------------------------------------------------------------------------------------- members
    def _members(self, node: ast.Node) -> ast.Node:
        while True:
            if self._next.kind == ".":
                node = self._after_dot(node)
            elif self._next.kind == "[":
                node = self._index_of(node)
            else:
                return node

    def _after_dot(self, operand: ast.Node) -> ast.Node:
        dot = self._take(".")
        optional = self._skip("?")
        name = self._take("name", "quoted")
        if name.kind == "quoted":
            self._problem(name.offset, "unsupported syntax: '`'")
        if optional:
            field = ast.Literal(offset=name.offset, value=name.text)
            return ast.Call(offset=dot.offset, function="_?._", arguments=(operand, field))
        if name.kind == "name" and self._next.kind == "(":
            opening = self._take("(")
            arguments = self._sequence(")")
            return self._expand(
                ast.Call(offset=opening.offset, function=name.text, target=operand, arguments=arguments)
            )
        return ast.Select(offset=dot.offset, operand=operand, member=name.text)

    def _index_of(self, operand: ast.Node) -> ast.Node:
        bracket = self._take("[")
        function = "_[?_]" if self._skip("?") else "_[_]"
        index = self._expression()
        self._take("]")
        return ast.Call(offset=bracket.offset, function=function, arguments=(operand, index))

    def _expand(self, call: ast.Call) -> ast.Node:
        try:
            return expand(call, self._macros)
        except Misuse as error:
            self._problem(error.offset, error.message)
            return ast.Literal(offset=call.offset, value=None)

    # --------------------------------------------------------------------------------------- primaries
    def _primary(self) -> ast.Node:
        handler = self._PRIMARIES.get(self._next.kind)
        if handler is None:
            raise self._unexpected("an expression")
        return handler(self)

    def _parenthesis(self) -> ast.Node:
        self._take("(")
        node = self._expression()
        self._take(")")
        return node

    def _named(self) -> ast.Node:
        """A name, a call of a function, or a message: ``name``, ``.name(...)``, ``a.b{...}``."""
        start = self._next
        dot = "." if self._skip(".") else ""
        name = self._take("name")
        if (message := self._message(dot, name)) is not None:
            return message
        if name.text in _RESERVED:
            self._problem(start.offset, f"reserved identifier: {name.text}")
        if self._next.kind == "(":
            opening = self._take("(")
            arguments = self._sequence(")")
            return self._expand(ast.Call(offset=opening.offset, function=dot + name.text, arguments=arguments))
        return ast.Name(offset=name.offset, name=dot + name.text)

    def _message(self, dot: str, name: Token) -> ast.Node | None:
        """A message literal, if names and dots lead to a brace; else nothing is taken."""
        index, names = self._index, [name.text]
        while self._tokens[index].kind == "." and self._tokens[index + 1].kind == "name":
            names.append(self._tokens[index + 1].text)
            index += 2
        if self._tokens[index].kind != "{":
            return None
        self._index = index
        brace = self._take("{")
        members = self._items("}", self._field)
        return ast.MessageLiteral(offset=brace.offset, name=dot + ".".join(names), members=members)

    def _field(self) -> ast.Member:
        optional = self._skip("?")
        name = self._take("name", "quoted")
        if name.kind == "quoted":
            self._problem(name.offset, "unsupported syntax: '`'")
        colon = self._take(":")
        return ast.Member(offset=colon.offset, name=name.text, value=self._expression(), optional=optional)

    def _list(self) -> ast.Node:
        bracket = self._take("[")
        elements = self._items("]", lambda: (self._skip("?"), self._expression()))
        optional = frozenset(index for index, (optional, _) in enumerate(elements) if optional)
        return ast.ListLiteral(
            offset=bracket.offset, elements=tuple(element for _, element in elements), optional=optional
        )

    def _map(self) -> ast.Node:
        brace = self._take("{")
        return ast.MapLiteral(offset=brace.offset, entries=self._items("}", self._entry))

    def _entry(self) -> ast.Entry:
        optional = self._skip("?")
        key = self._expression()
        colon = self._take(":")
        return ast.Entry(offset=colon.offset, key=key, value=self._expression(), optional=optional)

    def _items(self, end: str, item: Callable[[], _Item]) -> tuple[_Item, ...]:
        """What stands between brackets, with an optional comma at the end (a lone comma is one, too)."""
        items: list[_Item] = []
        while self._next.kind != end and (items or not self._skip(",")):
            items.append(item())
            if not self._skip(","):
                break
        self._take(end)
        return tuple(items)

    def _sequence(self, end: str) -> tuple[ast.Node, ...]:
        if self._skip(end):
            return ()
        nodes = [self._expression()]
        while self._skip(","):
            nodes.append(self._expression())
        self._take(end)
        return tuple(nodes)

    # ---------------------------------------------------------------------------------------- literals
    def _negative(self) -> ast.Node:
        minus = self._take("-")
        return self._number(minus.offset, "-")

    def _number(self, offset: int | None = None, sign: str = "") -> ast.Node:
        token = self._take("int", "uint", "float")
        offset = token.offset if offset is None else offset
        value = NUMBERS[token.kind](sign, token.text)
        if value is None:
            self._problem(offset, f"invalid {'double' if token.kind == 'float' else token.kind} literal")
        return ast.Literal(offset=offset, value=value)

    def _string(self) -> ast.Node:
        token = self._take("string", "bytes")
        try:
            value: str | bytes = unquote(token.text) if token.kind == "string" else unquote_bytes(token.text)
        except ValueError as error:
            self._problem(token.offset, str(error))
            value = ""
        return ast.Literal(offset=token.offset, value=value)

    def _keyword(self) -> ast.Node:
        token = self._take("true", "false", "null")
        return ast.Literal(offset=token.offset, value={"true": True, "false": False, "null": None}[token.kind])

    _PRIMARIES: Final[dict[str, Callable[["_Parser"], ast.Node]]] = {
        "(": _parenthesis,
        "[": _list,
        "{": _map,
        ".": _named,
        "name": _named,
        "-": _negative,
        "string": _string,
        "bytes": _string,
        **dict.fromkeys(("int", "uint", "float"), _number),
        **dict.fromkeys(("true", "false", "null"), _keyword),
    }


def _balance(function: str, terms: list[ast.Node], offsets: list[int]) -> ast.Node:
    """cel-go's balancedTree: the operator in the middle on top."""
    if not offsets:
        return terms[0]
    middle = len(offsets) // 2
    left = _balance(function, terms[: middle + 1], offsets[:middle])
    right = _balance(function, terms[middle + 1 :], offsets[middle + 1 :])
    return ast.Call(offset=offsets[middle], function=function, arguments=(left, right))
