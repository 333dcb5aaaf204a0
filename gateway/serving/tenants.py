"""Finds out for whom a review is, before it is decoded: the namespace, or the user for what has none.

The API server writes the members of the request in one order, and the namespace and the user before the object (FACTS:
``uid kind resource requestKind requestResource name namespace operation userInfo object``). So the tenant is in the
first KB. What is written in another order has no tenant of its own: it is then one of all such reviews.

A namespace is created in the namespace of its own name, and other objects without a namespace have names that their
author chooses: for those the user is the tenant, so that one user is not many tenants.
"""

from typing import Final

PREFIX_BYTES: Final = 2048
"""Where the tenant has to be: names have at most 253 characters, and a user's name is rarely longer."""

UNKNOWN: Final = b""
"""The tenant of reviews that are not written as the API server writes them."""

# A quote within a string is escaped, so that none of these can be a part of one.
_BEGINNING: Final = b'{"kind":"AdmissionReview",'
_OPERATION: Final = b',"operation":"'
_NAMESPACE: Final = b',"namespace":"'
_USER: Final = b',"userInfo":{"username":"'
_NAMESPACES: Final = b',"resource":"namespaces"}'


def tenant_of(body: bytes) -> bytes:
    """The tenant of a review; UNKNOWN if it is not found."""
    operation = body.find(_OPERATION, 0, PREFIX_BYTES)
    if operation < 0 or not body.startswith(_BEGINNING):
        return UNKNOWN
    namespace = body.find(_NAMESPACE, 0, operation)
    if namespace >= 0 and body.find(_NAMESPACES, 0, namespace) < 0:
        return body[namespace + len(_NAMESPACE) : body.find(b'"', namespace + len(_NAMESPACE), operation)]
    user = body.find(_USER, operation, PREFIX_BYTES)
    end = body.find(b'"', user + len(_USER), PREFIX_BYTES)
    return UNKNOWN if user < 0 or end < 0 else b"user " + body[user + len(_USER) : end]
