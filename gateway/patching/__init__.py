"""JSON Pointer, JSON Patch and JSON Merge Patch on shared structure, and the difference between two objects.

A patch is applied without copying the object: the result is a new root that shares all unchanged subtrees with the old
one. So an object of 200 KB is patched as fast as one of 2 KB, the objects before and after can both be kept, and the
difference is found by visiting only what is not shared.

A worker may have received only a part of the object (``visibility``) and may write only a part of it (``write_check``);
``field_ownership`` keeps which policy wrote which field.
"""
