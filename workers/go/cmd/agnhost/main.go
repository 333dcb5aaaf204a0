// Command agnhost serves the policies of the reference webhook of Kubernetes' end-to-end tests: agnhost --listen
// unix:agnhost.sock
package main

import (
	"admission-gateway.dev/worker"
	"admission-gateway.dev/worker/agnhost"
)

func main() { worker.Main(agnhost.Name, agnhost.Version, agnhost.Policies()...) }
