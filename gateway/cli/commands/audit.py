"""``admission-gateway audit``: its options."""

from pathlib import Path
from typing import Any

import click

from gateway.cli.commands.transport_options import reaching_options
from gateway.cli.hook_options import hooks_options
from gateway.cli.options import SECONDS, SectionedCommand, option, output_option

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command(cls=SectionedCommand)
@option("--policies", type=click.Path(path_type=Path), multiple=True, help="File or directory; repeatable.")
@hooks_options
@option("--cluster-policies", is_flag=True, help="Also the policies and workers that are objects in the cluster.")
@option("--kubeconfig", type=_FILE, help="The cluster, by this kubeconfig file. Default: the pod's service account.")
# No environment variables: what is chosen is chosen for one audit.
@click.option("--policy", multiple=True, metavar="NAME", help="Only this policy, or CONFIGURATION/NAME; repeatable.")
@click.option("--namespace", multiple=True, help="Only objects in this namespace; repeatable.")
@option("--exclude-namespace", multiple=True, help="Not the objects in this namespace; repeatable, as for render.")
@click.option(
    "--unjudged-from",
    type=click.Path(path_type=Path, allow_dash=True),
    metavar="LOG",
    help="Only what was admitted unjudged, by this log of gateways or of kube-apiserver's audit; - is standard input.",
)
@click.option("--state", type=_FILE, help="Keeps after each page where the audit is, and goes on from there.")
@option("--rate", type=SECONDS, default=20.0, metavar="NUMBER", help="Maximum objects per second; 0: no maximum.")
@reaching_options
@option("--worker-startup-timeout", type=SECONDS, default=15.0, help="Maximum seconds to wait for the workers.")
@option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="error", help="Log level.")
@output_option("text", "json", "policyreport", help="policyreport: objects of wgpolicyk8s.io for kubectl apply.")
def audit(policies: tuple[Path, ...], **values: Any) -> None:
    """Judge existing objects by the validating policies, and report what they would refuse.

    Each object is judged as if it were created now, as a dry run; nothing is changed, and no serving gateway is called.
    Exit 0 without violations, 1 with violations, 2 if something could not be judged.
    """
    from gateway.cli.audit import run

    run(policies, **values)
