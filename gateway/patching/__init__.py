"""JSON Pointer, JSON Patch and JSON Merge Patch on shared structure, and the difference between two objects.

A patch is applied without copying the object: the result is a new root that shares with the old one every subtree
that the patch did not touch. So an object of 200 KB is patched as fast as one of 2 KB, the object before and the
object after can both be kept, and what changed between them is found by following only what is not shared.

Who patches may have been shown only a part of the object (``visibility``), may write only a part of it (``scope``), and
is remembered by what it wrote (``authorship``).
"""
