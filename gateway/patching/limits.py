"""How much work one patch may ask for.

A patch is written by a worker and applied in the gateway's own event loop, where everybody waits for it. A short one
can ask for a great deal, so what it asks for is bounded, not only how long it is.
"""

from gateway.bounds import Bounds, of_body


class PatchLimits(Bounds):
    """The limits of one patch; what passes one is a PatchError that names the limit and what was observed."""

    operations: int = 10_000
    """Operations of a JSON Patch. What kube-apiserver takes from clients: maxJSONPatchOperations = 10000. At 1 µs
    each that is 10 ms of the event loop."""

    pointer_tokens: int = 256
    """Tokens of one pointer. One token is one level: a pointer with more of them than ``depth`` points below
    everything that may exist."""

    depth: int = 256
    """Levels of arrays and objects in a patch, and in the document that it makes. The limit for AdmissionReviews.
    Kubernetes' types (schemas in CRDs apart) stay below 20; Python's limit is 1000: walking 256 levels at two frames
    each leaves half of that to the caller."""

    values: int = 3_145_728
    """Values of JSON in what changes an object: a patch, or the object anew. Each takes some 100 bytes and 0.2 µs when
    it is read. As many as there are bytes in the largest object that kube-apiserver takes, 3 MiB: so what is no larger
    never has more, whatever stands in it."""

    copied_bytes: int = of_body(10)
    """The encoded size of everything that the operations of one patch copy together, or move to a deeper place. The
    body limit. An operation of 40 bytes that copies the document into itself doubles it: 10,000 of them would be
    2^10,000 documents. With this limit it grows by at most one largest body. (What moves deeper is not copied, but
    measured, at the same cost.)"""

    compared_values: int = 100_000
    """How many values all ``test`` operations together compare one by one, in the dialect of kube-apiserver; a text
    that is the same throughout counts nothing. At 10 µs each that is 1 s; a Pod has some hundred values."""

    shifted_elements: int = 500_000_000
    """How many array elements all insertions and removals together move by one place. Inserting at the front moves
    all others, 0.2 ns each: together 0.1 s. 10,000 insertions into an array of 50,000 elements fit; the largest array
    of the largest object (1.5 million elements in the 3 MiB that kube-apiserver takes) can be hit 333 times."""


DEFAULT_LIMITS = PatchLimits()
