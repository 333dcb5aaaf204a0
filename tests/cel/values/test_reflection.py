"""Which type a value has."""

import pytest

from gateway.cel.libraries.semver import Semver
from gateway.cel.values import types
from gateway.cel.values.containers import NONE, Map
from gateway.cel.values.durations import Duration
from gateway.cel.values.numbers import Uint
from gateway.cel.values.reflection import Opaque, named, type_of
from gateway.cel.values.timestamps import Timestamp


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (True, types.BOOL),
        (1, types.INT),
        (Uint(1), types.UINT),
        (1.0, types.DOUBLE),
        ("", types.STRING),
        (b"", types.BYTES),
        (None, types.NULL),
        ([1], types.LIST),
        ({"a": 1}, types.MAP),
        (Map(), types.MAP),
        (Timestamp(0, 0), types.TIMESTAMP),
        (Duration(0), types.DURATION),
        (types.INT, types.TYPE),
        (NONE, types.OPTIONAL),
        (Semver((1, 2, 3), ()), types.message("kubernetes.Semver")),
    ],
)
def test_every_value_has_a_type(value, kind):
    """What is in a list or a map does not matter; true is no int."""
    assert type_of(value) == kind
    assert named(value) == kind.name


def test_a_librarys_type_must_say_what_equals_what():
    """There is no equality that all of them share."""
    with pytest.raises(NotImplementedError):
        Opaque().equals(None)
