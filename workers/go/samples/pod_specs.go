package samples

import (
	"fmt"
	"strings"

	"admission-gateway.dev/worker"
)

// Finds PodSpecs: in Pods, and in the templates of objects that create Pods.
//
// container.before shows whether an UPDATE changes a container.

type groupKind struct{ group, kind string }

// podSpecs has the path to the PodSpec in each built-in kind that has one. In the subresources of a Pod that change
// containers (ephemeralcontainers, resize) the object is the Pod.
var podSpecs = map[groupKind][]string{
	{"", "Pod"}:                   {"spec"},
	{"", "PodTemplate"}:           {"template", "spec"},
	{"", "ReplicationController"}: {"spec", "template", "spec"},
	{"apps", "DaemonSet"}:         {"spec", "template", "spec"},
	{"apps", "Deployment"}:        {"spec", "template", "spec"},
	{"apps", "ReplicaSet"}:        {"spec", "template", "spec"},
	{"apps", "StatefulSet"}:       {"spec", "template", "spec"},
	{"batch", "Job"}:              {"spec", "template", "spec"},
	{"batch", "CronJob"}:          {"spec", "jobTemplate", "spec", "template", "spec"},
}

// podSpecPaths are the different paths of podSpecs, for claims.
var podSpecPaths = [][]string{
	{"spec"}, {"spec", "jobTemplate", "spec", "template", "spec"}, {"spec", "template", "spec"}, {"template", "spec"},
}

var (
	runningLists = []string{"initContainers", "containers"}
	allLists     = []string{"initContainers", "containers", "ephemeralContainers"}
)

// container is a container in an object.
type container struct {
	parents []string // path of its list: spec, containers
	index   int
	value   object
	before  object // the stored container of the same name and list; nil: none
}

// field returns its path in Kubernetes' notation: spec.containers[0].
func (c container) field() string {
	return fmt.Sprintf("%s[%d]", strings.Join(c.parents, "."), c.index)
}

// pointer returns the JSON Pointer of the container, or of a value in it.
func (c container) pointer(below ...string) string {
	return pointerOf(c.parents...) + worker.Pointer(c.index) + pointerOf(below...)
}

func pointerOf(tokens ...string) string {
	var made string
	for _, token := range tokens {
		made += worker.Pointer(token)
	}
	return made
}

// podSpecPath returns the path of the PodSpec in the request's object; nil: its kind has none.
func podSpecPath(request *worker.Request) []string {
	if request.Kind == nil {
		return nil
	}
	return podSpecs[groupKind{request.Kind.Group, request.Kind.Kind}]
}

// containersOf returns the containers in these lists of the PodSpec.
func containersOf(request *worker.Request, lists []string) ([]container, error) {
	path := podSpecPath(request)
	if path == nil {
		return nil, nil
	}
	now, err := objectOf(request)
	if err != nil {
		return nil, err
	}
	old, err := oldObjectOf(request)
	if err != nil {
		return nil, err
	}
	var found []container
	for _, name := range lists {
		before := map[string]object{}
		for _, value := range listOf(objectIn(old, path...), name) {
			if stored, is := value.(object); is {
				before[textOf(stored, "name")] = stored
			}
		}
		for index, value := range listOf(objectIn(now, path...), name) {
			if written, is := value.(object); is {
				parents := append(append([]string{}, path...), name)
				found = append(found, container{parents, index, written, before[textOf(written, "name")]})
			}
		}
	}
	return found, nil
}

// claimsOn returns the inputs for these members of containers, in object and oldObject.
func claimsOn(lists, members []string) []string {
	var claims []string
	for _, whole := range []string{"object", "oldObject"} {
		for _, place := range placesOf(lists, members) {
			claims = append(claims, worker.Pointer(whole)+place)
		}
	}
	return claims
}

// placesOf returns the writes for these members of containers.
func placesOf(lists, members []string) []string {
	var places []string
	for _, path := range podSpecPaths {
		for _, name := range lists {
			for _, member := range members {
				places = append(places, pointerOf(path...)+pointerOf(name, "*")+pointerOf(strings.Split(member, "/")...))
			}
		}
	}
	return places
}
