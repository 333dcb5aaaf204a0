"""The functions that kube-apiserver 1.36 has in its CEL environment (k8s.io/apiserver/pkg/cel/environment/base.go).

Not there, and so a mistake when compiling: math.*, base64.*, cel.bind, jsonpatch.*, reverse() of strings.
"""

from typing import Final

from gateway.conditions.libraries.addresses import ADDRESSES
from gateway.conditions.libraries.authorizer import AUTHORIZER
from gateway.conditions.libraries.conversions import CONVERSIONS
from gateway.conditions.libraries.formats import NAMED_FORMATS
from gateway.conditions.libraries.formatting import FORMATTING
from gateway.conditions.libraries.lists import LISTS
from gateway.conditions.libraries.operators import OPERATORS
from gateway.conditions.libraries.optionals import OPTIONALS
from gateway.conditions.libraries.overloads import Function, functions
from gateway.conditions.libraries.quantities import QUANTITIES
from gateway.conditions.libraries.regexes import REGEXES
from gateway.conditions.libraries.sizes import SIZES
from gateway.conditions.libraries.strings import STRINGS
from gateway.conditions.libraries.times import TIMES
from gateway.conditions.libraries.urls import URLS
from gateway.conditions.libraries.versions import VERSIONS

FUNCTIONS: Final[dict[str, Function]] = functions(
    (
        OPERATORS,
        CONVERSIONS,
        TIMES,
        SIZES,
        LISTS,
        STRINGS,
        FORMATTING,
        REGEXES,
        URLS,
        QUANTITIES,
        ADDRESSES,
        VERSIONS,
        NAMED_FORMATS,
        OPTIONALS,
        AUTHORIZER,
    )
)
"""By name. The order of the libraries is the order in which overloads of the same name are tried."""
