// Command webhook is a manager with three admission handlers: a defaulter and a validator of Deployments, and a handler
// of its own for Pods.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const (
	owner   = "example.com/owner"
	creator = "example.com/created-by"
)

// deployments is an admission.Defaulter and an admission.Validator.
type deployments struct{}

func (deployments) Default(_ context.Context, deployment *appsv1.Deployment) error {
	if _, has := deployment.Annotations[owner]; !has {
		if deployment.Annotations == nil {
			deployment.Annotations = map[string]string{}
		}
		deployment.Annotations[owner] = "nobody"
	}
	return nil
}

func (d deployments) ValidateCreate(_ context.Context, deployment *appsv1.Deployment) (admission.Warnings, error) {
	return d.judge(deployment, nil)
}

func (d deployments) ValidateUpdate(_ context.Context, old, deployment *appsv1.Deployment) (admission.Warnings, error) {
	return d.judge(deployment, old)
}

func (deployments) ValidateDelete(context.Context, *appsv1.Deployment) (admission.Warnings, error) {
	return nil, nil
}

func (deployments) judge(deployment, old *appsv1.Deployment) (admission.Warnings, error) {
	var warnings admission.Warnings
	for _, container := range deployment.Spec.Template.Spec.Containers {
		if !strings.Contains(container.Image, ":") {
			warnings = append(warnings, fmt.Sprintf("container %q: image %q has no tag", container.Name, container.Image))
		}
	}
	var wrong field.ErrorList
	if replicas := deployment.Spec.Replicas; replicas != nil && *replicas > 10 {
		wrong = append(wrong, field.Invalid(field.NewPath("spec", "replicas"), *replicas, "must be at most 10"))
	}
	if old != nil && old.Annotations[owner] != deployment.Annotations[owner] {
		path := field.NewPath("metadata", "annotations").Key(owner)
		wrong = append(wrong, field.Forbidden(path, "the owner stays"))
	}
	if len(wrong) > 0 {
		kind := appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind()
		return warnings, apierrors.NewInvalid(kind, deployment.Name, wrong)
	}
	return warnings, nil
}

// pods is an admission.Handler.
type pods struct{ decoder admission.Decoder }

func (p pods) Handle(_ context.Context, request admission.Request) admission.Response {
	var pod corev1.Pod
	if err := p.decoder.Decode(request, &pod); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	said, has := pod.Annotations[creator]
	if has && said != request.UserInfo.Username {
		return admission.Denied(fmt.Sprintf("annotation %q is not yours to write", creator))
	}
	if has {
		return admission.Allowed("")
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[creator] = request.UserInfo.Username
	changed, err := json.Marshal(&pod)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.PatchResponseFromRaw(request.Object.Raw, changed)
}

func main() {
	certificates := flag.String("webhook-cert-path", "", "The folder with tls.crt and tls.key.")
	port := flag.Int("webhook-port", 9443, "Where the webhooks are served.")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	if err := run(*certificates, *port); err != nil {
		ctrl.Log.Error(err, "the manager ended")
		os.Exit(1)
	}
}

func run(certificates string, port int) error {
	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Metrics:       metricsserver.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{CertDir: certificates, Port: port}),
	})
	if err != nil {
		return err
	}
	err = ctrl.NewWebhookManagedBy(manager, &appsv1.Deployment{}).
		WithDefaulter(deployments{}).
		WithValidator(deployments{}).
		Complete()
	if err != nil {
		return err
	}
	decoder := admission.NewDecoder(manager.GetScheme())
	manager.GetWebhookServer().Register("/mutate-pods", &webhook.Admission{Handler: pods{decoder}})
	return manager.Start(ctrl.SetupSignalHandler())
}
