"""Every pod of the chart, as it is rendered for users and tests, runs with the least that it needs."""

import pytest
import yaml

from tests.deploy.chart import RENDERED


def pods(values):
    """The specs of all pods that are rendered with these values."""
    found = []
    for each in yaml.safe_load_all(RENDERED[values].read_text()):
        if each and each["kind"] in {"Deployment", "Job"}:
            found.append(each["spec"]["template"]["spec"])
        elif each and each["kind"] == "CronJob":
            found.append(each["spec"]["jobTemplate"]["spec"]["template"]["spec"])
    return found


@pytest.mark.parametrize("values", RENDERED)
def test_a_pod_is_unprivileged(values):
    """As Pod Security's profile "restricted" wants, and on a root file system that nothing can write."""
    assert pods(values)
    for pod in pods(values):
        context = pod["securityContext"]
        assert (context["runAsNonRoot"], context["runAsUser"]) == (True, 65532)
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"hostPID", "hostIPC"} & pod.keys()
        assert not any("hostPath" in volume for volume in pod.get("volumes", ()))
        for container in (*pod["containers"], *pod.get("initContainers", ())):
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
