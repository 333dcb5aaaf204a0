"""What an expression can name: variables, types with their members, functions (cel-go's checker/env.go and decls).

Types that have members are messages: the well-known ones of protocol buffers, and those that an environment declares.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from gateway.cel.libraries.overloads import Function
from gateway.cel.values import types
from gateway.cel.values.messages import WELL_KNOWN
from gateway.cel.values.types import Type, message, type_of_type, written

_NAMED: Final = (
    types.BOOL,
    types.BYTES,
    types.DOUBLE,
    types.DURATION,
    types.INT,
    written("list(A)"),
    written("map(A, B)"),
    types.NULL,
    types.STRING,
    types.TIMESTAMP,
    types.TYPE,
    types.UINT,
)

_OF_LIBRARIES: Final[Mapping[Type, str]] = {
    written("net.IP"): "isIP",
    written("net.CIDR"): "isCIDR",
    written("optional_type"): "optional.of",
}
"""Types that a library brings, each with a function of that library."""


class Declarations(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """``names`` are those of variables and of types (``type(x) == int``).

    ``members`` are the members of messages, with their types. A type that is not there has no members, and its name
    cannot be used.
    """

    variables: frozenset[str]
    names: dict[str, Type]
    members: Mapping[str, Mapping[str, Type]]
    functions: Mapping[str, Function]


def declare(
    variables: Mapping[str, str], messages: Mapping[str, Mapping[str, str]], functions: Mapping[str, Function]
) -> Declarations:
    """Declarations out of types as they are written: ``{"object": "dyn", "names": "list(string)"}``."""
    named = [*_NAMED, *(kind for kind, function in _OF_LIBRARIES.items() if function in functions)]
    return Declarations(
        variables=frozenset(variables),
        names={
            **{name: type_of_type(found.type) for name, found in WELL_KNOWN.items()},
            **{kind.name: type_of_type(kind) for kind in named},
            **{name: type_of_type(message(name)) for name in messages},
            **{name: written(kind) for name, kind in variables.items()},
        },
        members={
            **{name: found.members for name, found in WELL_KNOWN.items()},
            **{name: {member: written(kind) for member, kind in members.items()} for name, members in messages.items()},
        },
        functions=functions,
    )
