package samples

import (
	"fmt"
	"strings"

	"admission-gateway.dev/worker"
)

// Where Pods are described: in a Pod itself, and in the templates of what creates Pods.
//
// A container that an UPDATE leaves as it was is not the request's doing; container.before tells.

type groupKind struct{ group, kind string }

// podSpecs has the path to the PodSpec in each kind of Kubernetes' own that has one. In the subresources of a Pod
// that change containers (ephemeralcontainers, resize) the object is the Pod.
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

// container is one in an object.
type container struct {
	parents []string // where its list is: spec, containers
	index   int
	value   object
	before  object // the container of that name in the same list as it is stored; nil: there is none
}

// field is its place in Kubernetes' notation: spec.containers[0].
func (c container) field() string {
	return fmt.Sprintf("%s[%d]", strings.Join(c.parents, "."), c.index)
}

// pointer is its place, or one below it, as a JSON Pointer over the object.
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

// podSpecPath says where the PodSpec is in the request's object; nil: its kind has none.
func podSpecPath(request *worker.Request) []string {
	if request.Kind == nil {
		return nil
	}
	return podSpecs[groupKind{request.Kind.Group, request.Kind.Kind}]
}

// containersOf the request's object, in these lists of its PodSpec.
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

// claimsOn these members of containers, before and after: JSON Pointers over the request.
func claimsOn(lists, members []string) []string {
	var claims []string
	for _, whole := range []string{"object", "oldObject"} {
		for _, place := range placesOf(lists, members) {
			claims = append(claims, worker.Pointer(whole)+place)
		}
	}
	return claims
}

// placesOf these members of containers: JSON Pointers over the object.
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
