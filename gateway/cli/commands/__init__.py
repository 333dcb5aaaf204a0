"""What click knows of each command: its options and its help.

A shell that completes a word starts the command once for each TAB. So these modules import nothing that costs time;
what a command does, ``gateway.cli.COMMAND``, is imported when it runs.
"""
