"""The types of metav1 (k8s.io/apimachinery) that more than one room reads, field by field, with their own names."""

from typing import Final

from gateway.gotypes.types import ANYTHING, BOOL, INT64, STRING, STRING_MAP, STRINGS, TIME, ListOf, Struct, Text

UID: Final = Text("types.UID")
TYPE_META: Final = {"kind": STRING, "apiVersion": STRING}
"""The fields of metav1.TypeMeta, which is embedded."""

OWNER_REFERENCE: Final = Struct(
    "v1.OwnerReference",
    {
        "apiVersion": STRING,
        "kind": STRING,
        "name": STRING,
        "uid": UID,
        "controller": BOOL,
        "blockOwnerDeletion": BOOL,
    },
)
_MANAGED_FIELDS: Final = Struct(
    "v1.ManagedFieldsEntry",
    {
        "manager": STRING,
        "operation": Text("v1.ManagedFieldsOperationType"),
        "apiVersion": STRING,
        "time": TIME,
        "fieldsType": STRING,
        "fieldsV1": ANYTHING,
        "subresource": STRING,
    },
)
OBJECT_META: Final = Struct(
    "v1.ObjectMeta",
    {
        "name": STRING,
        "generateName": STRING,
        "namespace": STRING,
        "selfLink": STRING,
        "uid": UID,
        "resourceVersion": STRING,
        "generation": INT64,
        "creationTimestamp": TIME,
        "deletionTimestamp": TIME,
        "deletionGracePeriodSeconds": INT64,
        "labels": STRING_MAP,
        "annotations": STRING_MAP,
        "ownerReferences": ListOf(OWNER_REFERENCE),
        "finalizers": STRINGS,
        "managedFields": ListOf(_MANAGED_FIELDS),
    },
)


def group_version(group: str, version: str) -> str:
    """An apiVersion: ``apps/v1``, and ``v1`` for the core group."""
    return f"{group}/{version}" if group else version
