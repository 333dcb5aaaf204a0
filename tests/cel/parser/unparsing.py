"""Trees and their texts: what makes two trees the same, and the text of a tree without macros."""

from gateway.cel.parser import ast
from gateway.cel.parser.parser import parse
from gateway.cel.values.numbers import Uint


def tree(text, macros=None):
    """The tree of a text that has no problems; without macros unless some are given."""
    parsed = parse(text, macros or {})
    assert parsed.tree is not None, parsed.problems
    return parsed.tree


def shape(node):  # noqa: PLR0911 - one return for each kind of node
    """A tree without its offsets, as tuples: equal if the trees mean the same."""
    match node:
        case ast.Literal(value=value):
            return ("literal", type(value).__name__, repr(value))
        case ast.Name(name=name):
            return ("name", name)
        case ast.Select(operand=operand, member=member, test=test):
            return ("has" if test else "select", shape(operand), member)
        case ast.Call(function=function, target=target, arguments=arguments):
            return ("call", function, target and shape(target), *map(shape, arguments))
        case ast.ListLiteral(elements=elements, optional=optional):
            return ("list", tuple(sorted(optional)), *map(shape, elements))
        case ast.MapLiteral(entries=entries):
            return ("map", *((shape(each.key), shape(each.value), each.optional) for each in entries))
        case ast.MessageLiteral(name=name, members=members):
            return ("message", name, *((each.name, shape(each.value), each.optional) for each in members))
        case ast.Fold():
            parts = (node.over, node.initial, node.condition, node.step, node.result)
            return ("fold", node.variable, node.second, node.accumulator, *map(shape, parts))
    raise TypeError(node)


def unparse(node):  # noqa: PLR0911 - one return for each kind of node
    """A text of a tree, with brackets around every operator."""
    match node:
        case ast.Literal(value=value):
            return _literal(value)
        case ast.Name(name=name):
            return name
        case ast.Select(operand=operand, member=member):
            return f"{unparse(operand)}.{member}"
        case ast.Call():
            return _call(node)
        case ast.ListLiteral(elements=elements, optional=optional):
            return f"[{', '.join('?' * (i in optional) + unparse(each) for i, each in enumerate(elements))}]"
        case ast.MapLiteral(entries=entries):
            inner = ("?" * each.optional + f"{unparse(each.key)}: {unparse(each.value)}" for each in entries)
            return f"{{{', '.join(inner)}}}"
        case ast.MessageLiteral(name=name, members=members):
            inner = ("?" * each.optional + f"{each.name}: {unparse(each.value)}" for each in members)
            return f"{name}{{{', '.join(inner)}}}"
    raise TypeError(node)


def _literal(value):
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, Uint):
        return f"{int(value)}u"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return f"{value:.400f}" if abs(value) < 1e-300 else repr(value) if "." in repr(value) else f"{value:.1f}"
    if isinstance(value, bytes):
        return "b'" + "".join(f"\\x{byte:02x}" for byte in value) + "'"
    return "'" + "".join(f"\\U{ord(char):08x}" for char in value) + "'"


def _call(node):
    name, arguments = node.function, [unparse(each) for each in node.arguments]
    if name == "_?_:_":
        return "({} ? {} : {})".format(*arguments)
    if name in {"_[_]", "_[?_]"}:
        return f"{arguments[0]}[{'?' * (name == '_[?_]')}{arguments[1]}]"
    if name == "_?._":
        return f"{arguments[0]}.?{node.arguments[1].value}"
    if name in {"!_", "-_"}:
        return f"({name[0]}({arguments[0]}))"
    if name == "@in" or name.startswith("_"):
        return f"({arguments[0]} {name.strip('_@')} {arguments[1]})"
    target = "" if node.target is None else f"{unparse(node.target)}."
    return f"{target}{name}({', '.join(arguments)})"
