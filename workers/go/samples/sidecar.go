package samples

import (
	"context"
	"encoding/json"

	"admission-gateway.dev/worker"
)

// sidecar adds a container to each Pod, once.
//
// A container whose restartPolicy is Always is a sidecar as Kubernetes defines it, and is appended to the init
// containers; any other is appended to the containers. It is added only on CREATE, because containers are immutable
// later. It is not added:
//
//   - if a container of that name exists, so that a second run changes nothing (names are unique in a Pod; if an init
//     container without restartPolicy Always has the name, the user gets a warning);
//   - to mirror Pods, which the kubelet creates from files: the API server cannot change their containers;
//   - if the Pod's annotation is false.

const (
	mirrorAnnotation  = "kubernetes.io/config.mirror"
	defaultAnnotation = "sidecar.admission-gateway.dev/inject"
)

// SidecarSettings are the settings of sidecar.
type SidecarSettings struct {
	// Container is a v1 Container, added as written. The volumes that it mounts must exist in the Pods.
	Container sidecarContainer `json:"container"`
	// Annotation is the key of a Pod's annotation which, with the value false, keeps the sidecar out; nil:
	// sidecar.admission-gateway.dev/inject.
	Annotation *string `json:"annotation,omitempty"`
}

// sidecarContainer is a container, with its text.
type sidecarContainer struct {
	text   json.RawMessage
	values object
}

// UnmarshalJSON reads an object.
func (s *sidecarContainer) UnmarshalJSON(text []byte) error {
	if text[0] != '{' {
		return worker.SettingsError{Message: "must be an object"}
	}
	s.text = append(s.text, text...)
	return json.Unmarshal(text, &s.values)
}

// Sidecar is the policy.
var Sidecar = worker.Policy[SidecarSettings]{
	Name:  "sidecar",
	Phase: worker.Mutating,
	Judge: sidecar,
	Check: checkSidecar,
	Schema: json.RawMessage(`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",` +
		`"properties":{"container":{"type":"object"},"annotation":{"type":"string","default":"sidecar.admission-gateway.dev/inject"}},` +
		`"required":["container"],"additionalProperties":false}`),
	Inputs: worker.Pointers(
		"/object/metadata/annotations",
		"/object/spec/containers/*/name",
		"/object/spec/initContainers/*/name",
		"/object/spec/initContainers/*/restartPolicy",
	),
	Writes:      worker.Pointers("/spec/containers", "/spec/initContainers"),
	Description: "Adds a container to each Pod that is created.",
}

// checkSidecar checks the required fields of a container.
func checkSidecar(settings SidecarSettings, findings *worker.Findings) {
	for _, name := range []string{"name", "image"} {
		if textOf(settings.Container.values, name) == "" {
			findings.Error("/container/"+name, "Required value: a text that is not empty")
		}
	}
	if policy, has := settings.Container.values["restartPolicy"]; has && policy != "Always" {
		findings.Error("/container/restartPolicy", "must be Always (a sidecar that init containers can use) or absent")
	}
}

func sidecar(_ context.Context, request *worker.Request, settings SidecarSettings) (worker.Answer, error) {
	isPod := request.Kind != nil && request.Kind.Group == "" && request.Kind.Kind == "Pod"
	found, err := objectOf(request)
	if found == nil || request.Operation != "CREATE" || request.SubResource != "" || !isPod || isKeptOut(found, settings) {
		return nil, err
	}
	spec, name := objectIn(found, "spec"), textOf(settings.Container.values, "name")
	if named(spec, "containers", name) != nil {
		return nil, nil
	}
	if same := named(spec, "initContainers", name); same != nil {
		if same["restartPolicy"] == "Always" {
			return nil, nil
		}
		return worker.Allow().WithWarnings("sidecar " + quoted(name) + " is not added: an init container has its name"), nil
	}
	place := "containers"
	if _, has := settings.Container.values["restartPolicy"]; has {
		place = "initContainers"
	}
	if listOf(spec, place) != nil {
		return worker.Patch(worker.Add("/spec/"+place+"/-", settings.Container.text)), nil
	}
	return worker.Patch(worker.Add("/spec/"+place, []json.RawMessage{settings.Container.text})), nil
}

func isKeptOut(pod object, settings SidecarSettings) bool {
	annotations := objectIn(pod, "metadata", "annotations")
	key := defaultAnnotation
	if settings.Annotation != nil {
		key = *settings.Annotation
	}
	_, mirror := annotations[mirrorAnnotation]
	return mirror || annotations[key] == "false"
}

// named returns the container with a name in a list; nil: none.
func named(spec object, place, name string) object {
	for _, value := range listOf(spec, place) {
		if found, is := value.(object); is && found["name"] == name {
			return found
		}
	}
	return nil
}
