"""``/add-label``, of any object, and ``/crd``."""

from typing import Final

from admission_worker import Answer, GroupVersionResource, Request, patch
from admission_worker.samples.agnhost.agnhost_worker import KEY, UNWANTED, denial, members, worker, written

ADDED: Final = "added-label"

CRDS: Final = tuple(
    GroupVersionResource("apiextensions.k8s.io", version, "customresourcedefinitions") for version in ("v1beta1", "v1")
)


@worker.mutating("add-label", inputs=["/object/metadata/labels"], writes=["/metadata/labels"])
def add_label(request: Request) -> Answer | None:
    """Sets the label added-label to yes."""
    if request.object is None:
        return denial("unexpected end of JSON input")
    labels = members(request.object, "metadata", "labels")
    if not labels:
        return patch([{"op": "add", "path": "/metadata/labels", "value": {ADDED: "yes"}}])
    if ADDED not in labels:
        return patch([{"op": "add", "path": f"/metadata/labels/{ADDED}", "value": "yes"}])
    if labels[ADDED] != "yes":
        return patch([{"op": "replace", "path": f"/metadata/labels/{ADDED}", "value": "yes"}])
    return None


@worker.validating("crd", inputs=["/object/metadata/labels"])
def crd(request: Request) -> Answer | None:
    """Denies CustomResourceDefinitions with an unwanted label."""
    if request.resource not in CRDS:
        either = ", ".join(map(written, CRDS))
        return denial(f"expect resource to be one of [{either}] but got {written(request.resource)}")
    if members(request.object, "metadata", "labels").get(KEY) == UNWANTED:
        return denial("the crd contains unwanted label")
    return None
