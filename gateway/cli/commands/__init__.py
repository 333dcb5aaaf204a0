"""The options and the help of each command, for click.

Shell completion starts the command on each TAB. So these modules import nothing slow; the implementation,
``gateway.cli.COMMAND``, is imported when the command runs.
"""
