package main

import (
	"encoding/json"
	"reflect"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"admission-gateway.dev/worker"
)

// request to create a Pod, in Kubernetes' own types.
func request(t *testing.T, spec corev1.PodSpec) admissionv1.AdmissionRequest {
	t.Helper()
	text, err := json.Marshal(corev1.Pod{Spec: spec})
	if err != nil {
		t.Fatal(err)
	}
	return admissionv1.AdmissionRequest{Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: text}}
}

func TestAContainerThatMayBeRootIsDenied(t *testing.T) {
	answer, err := runAsRoot.Review(t.Context(), request(t, corev1.PodSpec{Containers: []corev1.Container{{Name: "a"}}}), nil)
	wanted := worker.Deny("containers may run as root: a").
		WithCauses(worker.Cause{Field: "spec.containers[0].securityContext.runAsNonRoot", Message: "must be true"})
	if err != nil || !reflect.DeepEqual(answer, wanted) {
		t.Error(answer, err)
	}
}

func TestThePodsFieldIsTheDefaultOfItsContainers(t *testing.T) {
	spec := corev1.PodSpec{
		SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: new(true)},
		Containers:      []corev1.Container{{Name: "a"}},
	}
	if answer, err := runAsRoot.Review(t.Context(), request(t, spec), nil); err != nil || !reflect.DeepEqual(answer, worker.Allow()) {
		t.Error(answer, err)
	}
}

func TestADeleteWithoutAPodIsAllowed(t *testing.T) {
	deletion := admissionv1.AdmissionRequest{Operation: admissionv1.Delete}
	if answer, err := runAsRoot.Review(t.Context(), deletion, nil); err != nil || !reflect.DeepEqual(answer, worker.Allow()) {
		t.Error(answer, err)
	}
}
