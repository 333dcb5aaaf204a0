"""The functions that kube-apiserver 1.36 has in its CEL environment (k8s.io/apiserver/pkg/cel/environment/base.go).

Not there, and so a mistake when compiling: math.*, base64.*, cel.bind, jsonpatch.*, reverse() of strings.
"""

from typing import Final

from gateway.cel.libraries.addresses import ADDRESSES
from gateway.cel.libraries.authorizer import AUTHORIZER
from gateway.cel.libraries.conversions import CONVERSIONS
from gateway.cel.libraries.formats import NAMED_FORMATS
from gateway.cel.libraries.formatting import FORMATTING
from gateway.cel.libraries.lists import LISTS
from gateway.cel.libraries.operators import OPERATORS
from gateway.cel.libraries.optionals import OPTIONALS
from gateway.cel.libraries.overloads import Function, functions
from gateway.cel.libraries.quantities import QUANTITIES
from gateway.cel.libraries.regexes import REGEXES
from gateway.cel.libraries.sizes import SIZES
from gateway.cel.libraries.strings import STRINGS
from gateway.cel.libraries.times import TIMES
from gateway.cel.libraries.urls import URLS
from gateway.cel.libraries.versions import VERSIONS

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
