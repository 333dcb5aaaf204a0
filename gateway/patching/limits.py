"""Limits on the work of one patch.

A worker writes the patch, and the gateway applies it in its event loop, where all other reviews wait. A short patch can
cause a great deal of work, so the work is limited, not only the size.
"""

from gateway.bounds import Bounds, of_body


class PatchLimits(Bounds):
    """The limits of one patch. A patch that exceeds one is a PatchError with the limit and the observed value."""

    operations: int = 10_000
    """Operations of a JSON Patch. kube-apiserver's limit for clients: maxJSONPatchOperations = 10000. At 1 µs
    each that is 10 ms of the event loop."""

    pointer_tokens: int = 256
    """Tokens of one pointer. One token is one level: a pointer with more tokens than ``depth`` points to nothing that
    can exist."""

    depth: int = 256
    """Levels of arrays and objects in a patch, and in the document that it makes. The limit for AdmissionReviews.
    Kubernetes' types (schemas in CRDs apart) stay below 20; Python's limit is 1000: walking 256 levels at two frames
    each leaves half of that to the caller."""

    values: int = 3_145_728
    """JSON values in a change: a patch, or a whole object. Each takes some 100 bytes and 0.2 µs to parse. As many as
    the largest object that kube-apiserver accepts has bytes, 3 MiB: so a change of that size never exceeds the
    limit."""

    copied_bytes: int = of_body(10)
    """The encoded size of everything that the operations of one patch copy together, or move to a deeper place. The
    body limit. An operation of 40 bytes that copies the document into itself doubles it: 10,000 of them would be
    2^10,000 documents. With this limit it grows by at most one largest body. (What moves deeper is not copied, but
    measured, at the same cost.)"""

    compared_values: int = 100_000
    """How many values all ``test`` operations together compare one by one, in the dialect of kube-apiserver; values
    with equal texts do not count. At 10 µs each that is 1 s; a Pod has some hundred values."""

    shifted_elements: int = 500_000_000
    """How many array elements all insertions and removals together move by one place. Inserting at the front moves
    all others, 0.2 ns each: together 0.1 s. 10,000 insertions into an array of 50,000 elements fit; the largest array
    of the largest object (1.5 million elements in the 3 MiB that kube-apiserver takes) can be hit 333 times."""


DEFAULT_LIMITS = PatchLimits()
