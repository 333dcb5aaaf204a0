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

    tokens: int = 100_000
    """Tokens of all pointers of a patch: ten for each of the most operations. At 0.4 µs each 40 ms."""

    depth: int = 256
    """Levels of arrays and objects in a patch, and in the document that it makes. The limit for AdmissionReviews.
    Kubernetes' types (schemas in CRDs apart) stay below 20; Python's limit is 1000: walking 256 levels at two frames
    each leaves half of that to the caller."""

    values: int = 200_000
    """JSON values, and names of members, in a change: a patch, or a whole object; and in what its operations copy. To
    parse and to compare one takes 0.2 µs: 40 ms. etcd stores objects of at most 1.5 MB: at 16 bytes each for name and
    value, 190,000."""

    object_bytes: int = of_body(5)
    """The JSON text of a change, and of the object after a large one: half of the body limit, 10 MB. etcd stores 1.5 MB
    at most, of which each byte can be six in JSON. To encode so much takes up to 40 ms, and each policy of a chain
    might double it."""

    copied_bytes: int = of_body(1)
    """The encoded size of everything that the operations of one patch copy together, or move to a deeper place: a tenth
    of the body limit, 2 MB, more than etcd stores. At 10 ns a byte 20 ms. An operation of 40 bytes that copies the
    document into itself doubles it: 10,000 of them would be 2^10,000 documents. (What moves deeper is not copied, but
    measured, at the same cost.)"""

    compared_values: int = 5_000
    """How many values all ``test`` operations together compare one by one, in the dialect of kube-apiserver; values
    with equal texts do not count. At 10 µs each that is 50 ms; a Pod has some hundred values."""

    compared_bytes: int = 1_500_000
    """The JSON text of all values of the document that ``test`` operations compare, in the dialect of kube-apiserver:
    as much as the largest object that etcd stores. At 20 ns each 30 ms."""

    shifted_elements: int = 100_000_000
    """How many array elements all insertions and removals together move by one place. Inserting at the front moves
    all others, 0.4 ns each: together 40 ms. 10,000 insertions into an array of 10,000 elements fit."""


DEFAULT_LIMITS = PatchLimits()
