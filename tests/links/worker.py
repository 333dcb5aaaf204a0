"""A worker that denies what is labelled so, and says of each request that it judged it."""

from admission_worker import Worker, allow, deny

worker = Worker("faults", version="1")


@worker.validating("judge")
def judge(request):
    """The verdict that the label of the object asks for."""
    wanted = request.object["metadata"]["labels"]["verdict"]
    judged = {"judged": wanted}
    return deny("forbidden", audit_annotations=judged) if wanted == "deny" else allow(audit_annotations=judged)


if __name__ == "__main__":
    worker.main()
