"""JSON Pointer, JSON Patch and JSON Merge Patch on shared structure, and the difference between two objects.

A patch is applied without copying the object: the result is a new root that shares with the old one every subtree
that the patch did not touch. So an object of 200 KB is patched as fast as one of 2 KB, the object before and the
object after can both be kept, and what changed between them is found by following only what is not shared.
"""

from gateway.patching.application import apply_json_patch
from gateway.patching.dialect import PatchDialect
from gateway.patching.difference import Operation, difference, encode_patch
from gateway.patching.equality import Value, equal
from gateway.patching.errors import PatchError
from gateway.patching.limits import DEFAULT_LIMITS, PatchLimits
from gateway.patching.merging import apply_merge_patch
from gateway.patching.metadata import object_fault
from gateway.patching.parsing import parse_object
from gateway.patching.pointer import Pointer, format_pointer, parse_pointer

__all__ = [
    "DEFAULT_LIMITS",
    "Operation",
    "PatchDialect",
    "PatchError",
    "PatchLimits",
    "Pointer",
    "Value",
    "apply_json_patch",
    "apply_merge_patch",
    "difference",
    "encode_patch",
    "equal",
    "format_pointer",
    "object_fault",
    "parse_object",
    "parse_pointer",
]
