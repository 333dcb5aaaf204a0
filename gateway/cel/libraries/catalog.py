"""All functions, by the version of Kubernetes that introduced them (k8s.io/apiserver/pkg/cel/environment/base.go).

No version has these, so they are compile errors: math.*, base64.*, cel.bind, jsonpatch.*, reverse() of strings.
"""

from collections.abc import Mapping
from functools import cache
from typing import Final

from gateway.cel.libraries.accessors import ACCESSORS
from gateway.cel.libraries.addresses import ADDRESSES
from gateway.cel.libraries.authorizer import AUTHORIZER, SELECTORS
from gateway.cel.libraries.conversions import CONVERSIONS
from gateway.cel.libraries.formatting import FORMATTING
from gateway.cel.libraries.lists import EXTENDED_LISTS, LISTS, SETS
from gateway.cel.libraries.named_formats import NAMED_FORMATS
from gateway.cel.libraries.optionals import EXTENDED_OPTIONALS, MAP_INSERTS, OPTIONALS
from gateway.cel.libraries.overloads import Function, Library, functions
from gateway.cel.libraries.quantities import QUANTITIES
from gateway.cel.libraries.regexes import REGEXES
from gateway.cel.libraries.semver import SEMVER
from gateway.cel.libraries.stdlib import STDLIB
from gateway.cel.libraries.strings import QUOTING, STRINGS
from gateway.cel.libraries.urls import URLS
from gateway.cel.versions import Version

_LIBRARIES: Final[tuple[tuple[int, Library], ...]] = (
    (0, STDLIB),
    (0, CONVERSIONS),
    (0, ACCESSORS),
    (0, LISTS),
    (34, EXTENDED_LISTS),
    (29, SETS),
    (0, STRINGS),
    (29, QUOTING),
    (29, FORMATTING),
    (0, REGEXES),
    (0, URLS),
    (28, QUANTITIES),
    (30, ADDRESSES),
    (33, SEMVER),
    (31, NAMED_FORMATS),
    (28, OPTIONALS),
    (34, EXTENDED_OPTIONALS),
    (32, MAP_INSERTS),
    (27, AUTHORIZER),
    (31, SELECTORS),
)
"""Each with the minor version that introduced it. Overloads of the same name are tried in this order."""


@cache
def functions_of(version: Version) -> Mapping[str, Function]:
    """The functions that a version of Kubernetes has, by name."""
    return functions(library for since, library in _LIBRARIES if Version(1, since) <= version)
