package samples

import (
	"context"
	"encoding/json"

	"admission-gateway.dev/worker"
)

// sidecar: a container is added to each Pod, once.
//
// A container whose restartPolicy is Always is a sidecar in Kubernetes' own sense and goes to the init containers,
// behind those that are there; any other goes to the containers. Only when a Pod is created, for later its
// containers are immutable. Not added:
//
//   - where a container of that name exists, so that a second run changes nothing (names are unique over all of a
//     Pod's containers; if an init container that ends has the name, the user is warned);
//   - to mirror Pods, which the kubelet makes from files: the API server cannot change what they run;
//   - where the Pod's annotation says false.

const (
	mirrorAnnotation  = "kubernetes.io/config.mirror"
	defaultAnnotation = "sidecar.admission-gateway.dev/inject"
)

// SidecarSettings are those of sidecar.
type SidecarSettings struct {
	// Container is a v1 Container; what it mounts must exist in the Pods. Its text is added as it is written.
	Container sidecarContainer `json:"container"`
	// Annotation is the key of a Pod's annotation which, with the value false, keeps the sidecar out; nil:
	// sidecar.admission-gateway.dev/inject.
	Annotation *string `json:"annotation,omitempty"`
}

// sidecarContainer is a container that is read and kept as text.
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

// checkSidecar says what every container needs.
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

// named is the container of a name in a list; nil: there is none.
func named(spec object, place, name string) object {
	for _, value := range listOf(spec, place) {
		if found, is := value.(object); is && found["name"] == name {
			return found
		}
	}
	return nil
}
