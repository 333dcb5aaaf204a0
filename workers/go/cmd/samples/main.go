// Command samples serves the sample policies: samples --listen unix:samples.sock
package main

import (
	"admission-gateway.dev/worker"
	"admission-gateway.dev/worker/samples"
)

func main() { worker.Main(samples.Name, samples.Version, samples.Policies()...) }
