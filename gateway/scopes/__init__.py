"""What a policy may see, and what it may change: pointers, sets of places, and the part of a value that they show.

Inputs are places in the AdmissionRequest, writes are places in the object under review; the two are two types, so that
nobody takes one for the other. The first token of an input names a member of the request.
"""

from gateway.scopes.inputs import Inputs
from gateway.scopes.places import ANY, Places
from gateway.scopes.pointer import Pointer, PointerError, array_index, escaped, format_pointer, parse_pointer
from gateway.scopes.projection import shown_part
from gateway.scopes.writes import Writes

__all__ = [
    "ANY",
    "Inputs",
    "Places",
    "Pointer",
    "PointerError",
    "Writes",
    "array_index",
    "escaped",
    "format_pointer",
    "parse_pointer",
    "shown_part",
]
