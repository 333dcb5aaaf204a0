"""Which type a value has."""

from typing import Any, ClassVar, Final

import msgspec

from gateway.cel.values import types
from gateway.cel.values.containers import Map, Optional
from gateway.cel.values.durations import Duration
from gateway.cel.values.numbers import Uint
from gateway.cel.values.timestamps import Timestamp
from gateway.cel.values.types import Type


class Opaque(msgspec.Struct, frozen=True, eq=False):
    """A value of a library's own type. ``CEL`` is that type."""

    CEL: ClassVar[Type]

    def equals(self, other: Any) -> bool:
        """``==`` of CEL; raises a Fault where the API server has an error."""
        raise NotImplementedError


_KINDS: Final[dict[type, Type]] = {
    bool: types.BOOL,
    int: types.INT,
    Uint: types.UINT,
    float: types.DOUBLE,
    str: types.STRING,
    bytes: types.BYTES,
    type(None): types.NULL,
    list: types.LIST,
    dict: types.MAP,
    Map: types.MAP,
    Timestamp: types.TIMESTAMP,
    Duration: types.DURATION,
    Type: types.TYPE,
    Optional: types.OPTIONAL,
}


def type_of(value: Any) -> Type:
    """The type of a value; what is in a list or a map does not matter: ``list(dyn)``."""
    return _KINDS.get(type(value)) or value.CEL


def named(value: Any) -> str:
    """The name of a value's type."""
    return type_of(value).name
