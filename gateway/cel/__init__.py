"""CEL as kube-apiserver has it: text -> program; program, values of variables -> value, error, cost. See README.md."""
