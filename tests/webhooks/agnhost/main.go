// agnhost-webhook is the webhook of Kubernetes' own end-to-end tests, as it is: the command that the image
// registry.k8s.io/e2e-test-images/agnhost runs as "agnhost webhook", and nothing else of that image.
//
// It is the "existing webhook" of the tests: none of it is part of this project.
package main

import (
	"os"

	"k8s.io/kubernetes/test/images/agnhost/webhook"
)

func main() {
	if err := webhook.CmdWebhook.Execute(); err != nil {
		os.Exit(1) // cobra has printed the error
	}
}
