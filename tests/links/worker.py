"""A worker that denies what is labelled so, labels the rest, and says of each request that it judged it."""

from admission_worker import Worker, allow, deny, patch

worker = Worker("faults", version="1")


@worker.validating("judge")
def judge(request):
    """The verdict that the label of the object asks for."""
    wanted = request.object["metadata"]["labels"]["verdict"]
    judged = {"judged": wanted}
    return deny("forbidden", audit_annotations=judged) if wanted == "deny" else allow(audit_annotations=judged)


@worker.mutating("label")
def label(request):
    """The same, and the label that tests/links/reviews.py expects."""
    wanted = request.object["metadata"]["labels"]["verdict"]
    judged = {"judged": wanted}
    if wanted == "deny":
        return deny("forbidden", audit_annotations=judged)
    return patch([{"op": "add", "path": "/metadata/labels/judged", "value": wanted}], audit_annotations=judged)


if __name__ == "__main__":
    worker.main()
