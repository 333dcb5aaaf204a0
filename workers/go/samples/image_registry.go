package samples

import (
	"context"
	"regexp"
	"strings"

	"admission-gateway.dev/worker"
)

// image-registry: images of one registry are taken from another, such as a mirror.
//
// An image is written [REGISTRY[:PORT]/]PATH[:TAG][@DIGEST]. Short names are Docker's: the first component is a
// registry only if it has a "." or a ":" or is localhost (github.com/distribution/reference, normalize.go);
// otherwise it is docker.io, where a name of one component lies in library/. So nginx is docker.io/library/nginx,
// and user/app is docker.io/user/app. Tag and digest stay as they are.
//
// What lies in the new place already stays, so that a second run changes nothing. So does an image that an UPDATE
// does not touch: to rewrite it would restart a running Pod whose label somebody changes.

const (
	dockerHub    = "docker.io"
	oldDockerHub = "index.docker.io" // the reference grammar's other name for the same registry
)

var registryPlace = regexp.MustCompile(`\A[A-Za-z0-9.-]+(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*\z`)

// ImageRegistrySettings are those of image-registry.
type ImageRegistrySettings struct {
	// From is a registry such as docker.io, or a path in one such as registry.example.com/team.
	From string `json:"from"`
	// To is the registry, with or without a path, that takes its place.
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

// checkImageRegistry says what is no registry, and what would never rewrite anything.
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

// rewritten is the image in its new place; false: it stays where it is.
func rewritten(image, source, target string) (string, bool) {
	whole := normalized(image)
	// As it is written, too: what was moved to a target such as docker.io/a reads as docker.io/library/a the next
	// time.
	for _, name := range []string{whole, image} {
		if _, lies := restBelow(name, target); lies {
			return "", false
		}
	}
	rest, lies := restBelow(whole, source)
	return target + rest, lies
}

// normalized is the image with its registry: nginx:1 is docker.io/library/nginx:1.
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

// restBelow is what follows a place in a normalized image: a path, or a repository's tag or digest; false: it lies
// elsewhere.
func restBelow(whole, place string) (string, bool) {
	rest, lies := strings.CutPrefix(whole, place)
	ends := "/"
	if strings.Contains(place, "/") {
		ends = "/:@" // behind a registry alone, a colon begins its port
	}
	if !lies || rest != "" && !strings.ContainsRune(ends, rune(rest[0])) {
		return "", false
	}
	return rest, true
}
