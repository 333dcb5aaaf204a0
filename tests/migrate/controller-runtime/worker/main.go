// Command worker serves the same three handlers to the admission gateway.
package main

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"admission-gateway.dev/worker"
)

const (
	owner   = "example.com/owner"
	creator = "example.com/created-by"
)

// defaultOwner was deployments.Default.
var defaultOwner = worker.Policy[worker.NoSettings]{
	Name:   "default-owner",
	Phase:  worker.Mutating,
	Inputs: worker.Pointers("/object/metadata/annotations"),
	Writes: worker.Pointers("/metadata/annotations/example.com~1owner"),
	Judge: func(_ context.Context, request *worker.Request, _ worker.NoSettings) (worker.Answer, error) {
		var deployment metav1.PartialObjectMetadata
		if is, err := request.Object(&deployment); !is {
			return nil, err
		}
		if _, has := deployment.Annotations[owner]; has {
			return worker.Allow(), nil
		}
		return annotate(owner, "nobody"), nil
	},
}

// deployments was the validator.
var deployments = worker.Policy[worker.NoSettings]{
	Name:  "deployments",
	Phase: worker.Validating,
	Inputs: worker.Pointers(
		"/object/metadata/name", "/object/metadata/annotations", "/object/spec/replicas",
		"/object/spec/template/spec/containers", "/oldObject/metadata/annotations",
	),
	Judge: func(_ context.Context, request *worker.Request, _ worker.NoSettings) (worker.Answer, error) {
		var deployment, old appsv1.Deployment
		if is, err := request.Object(&deployment); !is {
			return nil, err // a DELETE brings no object
		}
		is, err := request.OldObject(&old)
		if err != nil {
			return nil, err
		}
		if !is {
			return judge(&deployment, nil), nil
		}
		return judge(&deployment, &old), nil
	},
}

func judge(deployment, old *appsv1.Deployment) worker.Answer {
	var warnings []string
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
		return denied(apierrors.NewInvalid(kind, deployment.Name, wrong)).WithWarnings(warnings...)
	}
	return worker.Allow().WithWarnings(warnings...)
}

// creators was the handler of Pods.
var creators = worker.Policy[worker.NoSettings]{
	Name:   "creators",
	Phase:  worker.Mutating,
	Inputs: worker.Pointers("/object/metadata/annotations", "/userInfo/username"),
	Writes: worker.Pointers("/metadata/annotations/example.com~1created-by"),
	Judge: func(_ context.Context, request *worker.Request, _ worker.NoSettings) (worker.Answer, error) {
		var pod metav1.PartialObjectMetadata
		if is, err := request.Object(&pod); !is {
			return nil, err
		}
		said, has := pod.Annotations[creator]
		switch {
		case has && said != request.UserInfo.Username:
			return worker.Deny(fmt.Sprintf("annotation %q is not yours to write", creator)), nil
		case has:
			return worker.Allow(), nil
		default:
			return annotate(creator, request.UserInfo.Username), nil
		}
	},
}

// annotate changes one annotation, and leaves alone what else there is, known or not.
func annotate(key, value string) worker.Answer {
	return worker.Merge(map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: value}}})
}

// denied is a Kubernetes error as a denial: message, code, causes and what it is about.
func denied(err *apierrors.StatusError) worker.Denied {
	status := err.Status()
	answer := worker.Deny(status.Message).WithCode(status.Code).WithReason(string(status.Reason))
	if about := status.Details; about != nil {
		answer = answer.WithDetails(worker.Details{Name: about.Name, Group: about.Group, Kind: about.Kind})
		for _, cause := range about.Causes {
			answer = answer.WithCauses(worker.Cause{Field: cause.Field, Message: cause.Message, Reason: string(cause.Type)})
		}
	}
	return answer
}

func main() { worker.Main("deployments", "1.0.0", defaultOwner, deployments, creators) }
