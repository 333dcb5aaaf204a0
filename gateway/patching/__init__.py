"""JSON Pointer, JSON Patch and JSON Merge Patch on shared structure, and the difference between two objects.

A patch is applied without copying the object: the result is a new root that shares with the old one every subtree
that the patch did not touch. So an object of 200 KB is patched as fast as one of 2 KB, the object before and the
object after can both be kept, and what changed between them is found by following only what is not shared.

Who patches may have been shown only a part of the object (``sight``), may write only a part of it (``scope``), and is
remembered by what it wrote (``authorship``).
"""

from gateway.patching.application import apply_json_patch
from gateway.patching.authorship import Authorship, ChangedField, Overwrite
from gateway.patching.dialect import PatchDialect
from gateway.patching.difference import Operation, difference, encode_patch
from gateway.patching.equality import Value, equal
from gateway.patching.errors import PatchError, ScopeError
from gateway.patching.limits import DEFAULT_LIMITS, PatchLimits
from gateway.patching.merging import apply_merge_patch, merged_unlike
from gateway.patching.metadata import object_fault
from gateway.patching.parsing import parse_object
from gateway.patching.pointer import Pointer, format_pointer, parse_pointer
from gateway.patching.replacement import apply_object
from gateway.patching.scope import out_of_scope

__all__ = [
    "DEFAULT_LIMITS",
    "Authorship",
    "ChangedField",
    "Operation",
    "Overwrite",
    "PatchDialect",
    "PatchError",
    "PatchLimits",
    "Pointer",
    "ScopeError",
    "Value",
    "apply_json_patch",
    "apply_merge_patch",
    "apply_object",
    "difference",
    "encode_patch",
    "equal",
    "format_pointer",
    "merged_unlike",
    "object_fault",
    "out_of_scope",
    "parse_object",
    "parse_pointer",
]
