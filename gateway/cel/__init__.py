"""CEL as kube-apiserver has it for matchConditions: text -> condition; condition, variables -> true, false, error."""
