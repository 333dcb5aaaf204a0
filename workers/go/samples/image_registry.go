package samples

import (
	"context"
	"regexp"
	"strings"

	"admission-gateway.dev/worker"
)

// image-registry rewrites images of one registry to another, such as a mirror.
//
// An image is written [REGISTRY[:PORT]/]PATH[:TAG][@DIGEST]. Short names are Docker's: the first component is a
// registry only if it has a "." or a ":" or is localhost (github.com/distribution/reference, normalize.go); otherwise
// it is docker.io, where a name of one component lies in library/. So nginx is docker.io/library/nginx, and user/app
// is docker.io/user/app. Tag and digest stay as they are.
//
// Images that are already in the target registry stay, so that a second run changes nothing. So does an image that an
// UPDATE does not change: rewriting it would restart a running Pod when a client changes a label.

const (
	dockerHub    = "docker.io"
	oldDockerHub = "index.docker.io" // the reference grammar's other name for the same registry
)

var registryPlace = regexp.MustCompile(`\A[A-Za-z0-9.-]+(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*\z`)

// ImageRegistrySettings are the settings of image-registry.
type ImageRegistrySettings struct {
	// From is a registry such as docker.io, or a path in one such as registry.example.com/team.
	From string `json:"from"`
	// To is the new registry, with or without a path.
	To string `json:"to"`
}

// ImageRegistry is the policy.
var ImageRegistry = worker.Policy[ImageRegistrySettings]{
	Name:        "image-registry",
	Phase:       worker.Mutating,
	Judge:       imageRegistry,
	Check:       checkImageRegistry,
	Inputs:      worker.Pointers(claimsOn(allLists, []string{"name", "image"})...),
	Writes:      worker.Pointers(placesOf(allLists, []string{"image"})...),
	Description: "Rewrites images of one registry to another, in Pods and in the templates of what creates Pods.",
}

// checkImageRegistry reports invalid registries, and settings that never rewrite an image.
func checkImageRegistry(settings ImageRegistrySettings, findings *worker.Findings) {
	sound := true
	for _, place := range []struct{ name, text string }{{"from", settings.From}, {"to", settings.To}} {
		if !registryPlace.MatchString(place.text) || !isRegistry(firstComponent(place.text)) {
			sound = false
			findings.Error(worker.Pointer(place.name),
				"must be a registry with or without a path, such as docker.io or mirror.example.com/hub, is "+quoted(place.text))
		}
	}
	if firstComponent(settings.From) == oldDockerHub {
		findings.Error("/from", oldDockerHub+" is another name of "+dockerHub+": write "+dockerHub)
	}
	if _, lies := restBelow(settings.From, settings.To); sound && lies {
		findings.Error("/from", quoted(settings.From)+" lies in "+quoted(settings.To)+", where images stay: nothing would ever be rewritten")
	}
}

func imageRegistry(_ context.Context, request *worker.Request, settings ImageRegistrySettings) (worker.Answer, error) {
	if !isWritten(request) {
		return nil, nil
	}
	found, err := containersOf(request, allLists)
	if err != nil {
		return nil, err
	}
	var operations []worker.Operation
	for _, one := range found {
		image := textOf(one.value, "image")
		if image == "" || one.before != nil && one.before["image"] == image {
			continue
		}
		if moved, moves := rewritten(image, settings.From, settings.To); moves {
			operations = append(operations, worker.Replace(one.pointer("image"), moved))
		}
	}
	return worker.Patch(operations...), nil
}

// rewritten returns the image in the target registry; false: it stays.
func rewritten(image, source, target string) (string, bool) {
	whole := normalized(image)
	// The image as written is compared too: in the second run, one moved to a target such as docker.io/a normalizes
	// to docker.io/library/a.
	for _, name := range []string{whole, image} {
		if _, lies := restBelow(name, target); lies {
			return "", false
		}
	}
	rest, lies := restBelow(whole, source)
	return target + rest, lies
}

// normalized returns the image with its registry: docker.io/library/nginx:1 for nginx:1.
func normalized(image string) string {
	first, path, slash := strings.Cut(image, "/")
	switch {
	case !slash || !isRegistry(first):
		first, path = dockerHub, image
	case first == oldDockerHub:
		first = dockerHub
	}
	if first == dockerHub && !strings.Contains(path, "/") {
		path = "library/" + path
	}
	return first + "/" + path
}

func isRegistry(component string) bool {
	return strings.ContainsAny(component, ".:") || component == "localhost" || component != strings.ToLower(component)
}

func firstComponent(place string) string {
	first, _, _ := strings.Cut(place, "/")
	return first
}

// restBelow returns the rest of a normalized image below a registry or path: a path, a tag or a digest; false: the
// image is elsewhere.
func restBelow(whole, place string) (string, bool) {
	rest, lies := strings.CutPrefix(whole, place)
	ends := "/"
	if strings.Contains(place, "/") {
		ends = "/:@" // after a registry without a path, a colon begins the port
	}
	if !lies || rest != "" && !strings.ContainsRune(ends, rune(rest[0])) {
		return "", false
	}
	return rest, true
}
