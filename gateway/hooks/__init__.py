"""shell-operator's hooks: programs that are run, one process for each question, and judge by files."""
