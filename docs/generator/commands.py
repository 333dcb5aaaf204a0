"""cli.md: every command, flag and environment variable, as click knows them."""

import os
from pathlib import Path
from typing import Any, Final

import click

from docs.generator.markdown import anchor, code, literals, prose, table
from gateway.cli import main as cli

_NAME: Final = "admission-gateway"
_LIMIT: Final = "--limit-"

_HEAD: Final = prose("""
    # The command line

    Every flag with its environment variable, its default and its meaning. A flag on the command line takes precedence
    over its variable. How to use them: [operate.md](../operate.md).

    ``-h`` or ``--help`` explains each command, ``--version`` prints the version.
""")


def page(root: Path) -> str:
    """The page's text."""
    del root
    sections = [_command(name, command) for name, command in cli.main.commands.items()]
    return (
        "\n\n".join(
            [
                _HEAD,
                prose(cli.__doc__ or ""),
                *sections,
            ]
        )
        + "\n"
    )


def _command(name: str, command: click.Command) -> str:
    options = [each for each in command.params if isinstance(each, click.Option)]
    arguments = [each for each in command.params if isinstance(each, click.Argument)]
    usage = " ".join([_NAME, name, *(["[OPTIONS]"] if options else []), *map(_argument, arguments)])
    parts = [f"## {name}", f"```text\n{usage}\n```", prose(command.help or "")]
    shown = [each for each in options if not each.hidden]
    if shown:
        head = ("Flag", "Environment variable", "Default", "Meaning")
        parts.append(table(head, [(_flag(each), _variable(each), _default(each), _meaning(each)) for each in shown]))
    return "\n\n".join(parts)


def _argument(argument: click.Argument) -> str:
    kind = argument.type
    return (
        "{" + "|".join(map(str, kind.choices)) + "}" if isinstance(kind, click.Choice) else argument.human_readable_name
    )


def _flag(option: click.Option) -> str:
    flag = ", ".join(option.opts)
    if option.is_flag:
        return code(flag)
    kind = option.type
    value = "{" + "|".join(map(str, kind.choices)) + "}" if isinstance(kind, click.Choice) else _value(kind)
    return code(f"{flag} {option.metavar or value}")


def _value(kind: "click.ParamType[Any]") -> str:
    if isinstance(kind, click.types.FloatParamType | click.types.IntParamType):
        return "NUMBER"
    # The gateway's own types are named by their form, capitals included: NAMESPACE/NAME[:PORT], https://HOST[:PORT].
    return kind.name.upper() if kind.name.islower() else kind.name


def _variable(option: click.Option) -> str:
    if option.envvar is None:
        return "none"
    names = [option.envvar] if isinstance(option.envvar, str) else option.envvar
    variable = " or ".join(map(code, names))
    if not option.multiple:
        return variable
    splitter = option.type.envvar_list_splitter
    separator = {None: "blanks", "\n": "line breaks"}.get(splitter) or code(str(splitter))
    assert os.pathsep == ":", "paths in a variable are separated by what this system separates them by"  # noqa: S101 - the page is made where we run
    return f"{variable}, several separated by {separator}"


def _default(option: click.Option) -> str:
    default = option.default
    if option.required:
        return "required"
    if option.is_flag or option.multiple or not isinstance(default, str | int | float):
        return "none"
    return code(f"{default:g}" if isinstance(default, float) else default)


def _meaning(option: click.Option) -> str:
    least, most = getattr(option.type, "min", None), getattr(option.type, "max", None)
    bounds = (f" At least {least}." if least is not None else "") + (f" At most {most}." if most is not None else "")
    flag = option.opts[0]
    reason = (
        f" [Why](limits.md#{anchor(flag.removeprefix(_LIMIT).replace('-', '_'))})." if flag.startswith(_LIMIT) else ""
    )
    return literals(option.help or "") + bounds + reason
