"""The command ``admission-gateway``. Exit codes: 0 done, 1 mistakes in the configuration, 2 could not (or wrong
usage).
"""

import click

from gateway import __version__
from gateway.cli.commands.bridge import bridge
from gateway.cli.commands.check import check
from gateway.cli.commands.completion import NAME, completion
from gateway.cli.commands.demo import demo
from gateway.cli.commands.hooks import hook_worker, shell_lib
from gateway.cli.commands.new_worker import new_worker
from gateway.cli.commands.purge import purge
from gateway.cli.commands.render import render
from gateway.cli.commands.review import review
from gateway.cli.commands.serve import serve
from gateway.cli.streams import CommandGroup


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name=NAME)
def main() -> None:
    """One admission webhook for kube-apiserver, and behind it policies as small workers."""


for _command in (
    completion,
    serve,
    bridge,
    hook_worker,
    shell_lib,
    check,
    render,
    review,
    purge,
    new_worker,
    demo,
):
    main.add_command(_command)
