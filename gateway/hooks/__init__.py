"""shell-operator's hooks: programs that the gateway runs, one process per call, and that answer by files."""
