"""shell-operator's hooks, as far as they are configuration: the output of ``--config``, and the policies it becomes."""
