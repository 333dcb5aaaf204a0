"""The JSON Pointers of a patch (RFC 6901): what is none of them is the patch's mistake."""

from gateway.patching.errors import PatchError
from gateway.scopes.pointer import Pointer, PointerError, array_index, escaped, format_pointer
from gateway.scopes.pointer import parse_pointer as parse

__all__ = ["Pointer", "array_index", "escaped", "format_pointer", "parse_pointer"]


def parse_pointer(text: str) -> Pointer:
    """The tokens of a JSON Pointer in its string form (RFC 6901, sections 3 and 4).

    Raises PatchError if it neither is empty nor starts with ``/``, or has a ``~`` that is not followed by 0 or 1.
    """
    try:
        return parse(text)
    except PointerError as error:
        raise PatchError(str(error)) from None
