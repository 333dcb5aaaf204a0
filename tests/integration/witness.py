"""A worker that has something to say to every request, and changes objects in each of the ways that there are."""

import os

from admission_worker import Worker, allow, deny, merge, mutated, patch

worker = Worker("witness", version="1")

UNTOUCHED = {"Node", "Lease", "Event", "ServiceAccount"}


@worker.mutating("stamp")
def stamp(request):
    """Changes every object that there is, except for some kinds."""
    if not isinstance(request.object, dict) or request.kind.kind in UNTOUCHED:
        return allow(audit_annotations={"seen": request.operation})
    match request.operation:
        case "CREATE":
            return merge({"metadata": {"annotations": {"stamped/by": "merge é\u2028<&>"}}}, warnings=["stamped"])
        case "UPDATE":
            return mutated(request.object | {"stamped~by/": ["object", 1, 1.0, None, True]})
        case _:
            return patch([{"op": "add", "path": "/stamped", "value": {"by": "patch"}}])


@worker.mutating("repeat")
def repeat(request):
    """Writes what is there already."""
    if not isinstance(request.object, dict):
        return None
    kind = request.object["kind"]
    return patch([{"op": "test", "path": "/kind", "value": kind}, {"op": "replace", "path": "/kind", "value": kind}])


@worker.validating("gate")
def gate(request):
    """Denies connect and delete, and warns of dry runs."""
    if request.operation in {"CONNECT", "DELETE"}:
        return deny(f"{request.operation} is not for you", code=418, audit_annotations={"who": "witness"})
    return allow(warnings=["a dry run"] if request.dry_run else [])


@worker.mutating("sign")
def sign(request):
    """Writes which process judged into a label."""
    return merge({"metadata": {"labels": {"judged-by": str(os.getpid())}}})


@worker.validating("attest")
def attest(request):
    """Writes which process judged into the audit log."""
    return allow(audit_annotations={"judged-by": str(os.getpid())})


if __name__ == "__main__":
    worker.main()
