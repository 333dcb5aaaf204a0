package agnhost

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"admission-gateway.dev/worker"
)

// Policies for Pods, and one for CustomResourceDefinitions.

var podResource = worker.GroupVersionResource{Version: "v1", Resource: "pods"}

// pod has the fields of a Pod that the policies check.
type pod struct {
	Metadata metadata `json:"metadata"`
	Spec     struct {
		Containers     []named `json:"containers"`
		InitContainers []named `json:"initContainers"`
	} `json:"spec"`
}

type named struct {
	Name string `json:"name"`
}

type addedContainer struct {
	Image     string   `json:"image"`
	Name      string   `json:"name"`
	Resources struct{} `json:"resources"`
}

func has(containers []named, name string) bool {
	return slices.ContainsFunc(containers, func(one named) bool { return one.Name == name })
}

// podOf returns the Pod of a request, if any; a denial if the object is not a Pod.
func podOf(request *worker.Request) (found pod, is bool, denial worker.Answer) {
	if isAbsent(request.RawObject) {
		return found, false, nil
	}
	if wrong := unknownKind(request.RawObject, "Pod", "v1"); wrong != "" {
		return found, false, denied(wrong)
	}
	if _, err := request.Object(&found); err != nil {
		return found, false, denied(err.Error())
	}
	return found, true, nil
}

var pods = worker.Policy[worker.NoSettings]{
	Name: "pods", Phase: worker.Validating,
	Description: "Denies Pods with an unwanted label or container name.",
	Judge: func(ctx context.Context, request *worker.Request, _ worker.NoSettings) (worker.Answer, error) {
		if resourceOf(request) != podResource {
			return denied(fmt.Sprintf("expect resource to be %v", podResource)), nil
		}
		found, is, denial := podOf(request)
		if !is {
			return denial, nil
		}
		var wrong []string
		switch found.Metadata.Labels["webhook-e2e-test"] {
		case "webhook-disallow":
			wrong = append(wrong, "the pod contains unwanted label;")
		case "wait-forever":
			<-ctx.Done()
			return nil, ctx.Err()
		}
		for _, container := range found.Spec.Containers {
			if strings.Contains(container.Name, "webhook-disallow") {
				wrong = append(wrong, "the pod contains unwanted container name;")
			}
		}
		if len(wrong) == 0 {
			return nil, nil
		}
		return denied(strings.Join(wrong, " ")), nil
	},
}

var podsAttach = worker.Policy[worker.NoSettings]{
	Name: "pods-attach", Phase: worker.Validating,
	Description: "Denies attaching to a Pod of a certain name with standard input.",
	Judge: func(_ context.Context, request *worker.Request, _ worker.NoSettings) (worker.Answer, error) {
		if request.Name != "to-be-attached-pod" {
			return nil, nil
		}
		if resource := resourceOf(request); resource != podResource {
			return denied(fmt.Sprintf("expect resource to be %v, got %v", podResource, resource)), nil
		}
		if request.SubResource != "attach" {
			return denied("expect subresource to be attach, got " + request.SubResource), nil
		}
		if wrong := unknownKind(request.RawObject, "PodAttachOptions", "v1"); wrong != "" {
			return denied(wrong), nil
		}
		var options struct {
			Stdin     bool   `json:"stdin"`
			Container string `json:"container"`
		}
		if _, err := request.Object(&options); err != nil {
			return denied(err.Error()), nil
		}
		if options.Stdin && options.Container == "container1" {
			return denied("attaching to pod 'to-be-attached-pod' is not allowed"), nil
		}
		return nil, nil
	},
}

var mutatingPods = worker.Policy[worker.NoSettings]{
	Name: "mutating-pods", Phase: worker.Mutating,
	Description: "Gives a Pod of a certain name an init container, in place of those that it has.",
	Judge: func(_ context.Context, request *worker.Request, _ worker.NoSettings) (worker.Answer, error) {
		if resourceOf(request) != podResource {
			crash(podResource)
		}
		const added = "webhook-added-init-container"
		found, is, denial := podOf(request)
		if !is || found.Metadata.Name != "webhook-to-be-mutated" || has(found.Spec.InitContainers, added) {
			return denial, nil
		}
		return worker.Patch(worker.Add("/spec/initContainers", []addedContainer{{Image: "webhook-added-image", Name: added}})), nil
	},
}

type sidecarSettings struct {
	Image string `json:"image,omitempty"`
}

var mutatingPodsSidecar = worker.Policy[sidecarSettings]{
	Name: "mutating-pods-sidecar", Phase: worker.Mutating,
	Description: "Gives each Pod a container with the image of its settings.",
	Judge: func(_ context.Context, request *worker.Request, settings sidecarSettings) (worker.Answer, error) {
		if settings.Image == "" {
			return worker.Deny("No image specified by the sidecar-image parameter").WithCode(500).WithReason(""), nil
		}
		if resourceOf(request) != podResource {
			crash(podResource)
		}
		const added = "webhook-added-sidecar"
		found, is, denial := podOf(request)
		if !is || has(found.Spec.Containers, added) {
			return denial, nil
		}
		return worker.Patch(worker.Add("/spec/containers/-", addedContainer{Image: settings.Image, Name: added})), nil
	},
}

var customResourceDefinitions = worker.Policy[worker.NoSettings]{
	Name: "crd", Phase: worker.Validating,
	Description: "Denies CustomResourceDefinitions with an unwanted label.",
	Judge: func(_ context.Context, request *worker.Request, _ worker.NoSettings) (worker.Answer, error) {
		v1beta1 := worker.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1beta1", Resource: "customresourcedefinitions"}
		v1 := worker.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
		resource := resourceOf(request)
		if resource != v1 && resource != v1beta1 {
			return denied(fmt.Sprintf("expect resource to be one of [%v, %v] but got %v", v1beta1, v1, resource)), nil
		}
		var definition struct {
			Metadata metadata `json:"metadata"`
		}
		if _, err := request.Object(&definition); err != nil {
			return denied(err.Error()), nil
		}
		if definition.Metadata.Labels["webhook-e2e-test"] == "webhook-disallow" {
			return denied("the crd contains unwanted label"), nil
		}
		return nil, nil
	},
}
