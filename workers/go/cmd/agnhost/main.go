// Command agnhost serves what Kubernetes' own end-to-end tests expect of a webhook: agnhost --listen unix:agnhost.sock
package main

import (
	"admission-gateway.dev/worker"
	"admission-gateway.dev/worker/agnhost"
)

func main() { worker.Main(agnhost.Name, agnhost.Version, agnhost.Policies()...) }
