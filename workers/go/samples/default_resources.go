package samples

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"

	"admission-gateway.dev/worker"
)

// default-resources: containers and init containers that lack requests or limits get the operator's.
//
// "If a limit is specified, but no request, ... the request defaults to the limit", and "a request must be less
// than or equal to the limit", says Kubernetes; so a default never makes a request exceed a limit: where it would,
// that default is left out and the user is warned. Left alone are containers whose resources an UPDATE does not
// touch (those of Pods and Jobs are immutable), and Pods with resources of their own (spec.resources), which their
// containers share.

// DefaultResourcesSettings are those of default-resources.
type DefaultResourcesSettings struct {
	// Requests has the default request of each resource, such as {"cpu": "100m", "memory": "128Mi"}.
	Requests amounts `json:"requests,omitzero"`
	// Limits has the default limit of each resource; none below its default request.
	Limits amounts `json:"limits,omitzero"`
}

// DefaultResources is the policy.
var DefaultResources = worker.Policy[DefaultResourcesSettings]{
	Name:        "default-resources",
	Phase:       worker.Mutating,
	Judge:       defaultResources,
	Check:       checkDefaultResources,
	Schema:      resourcesSchema,
	Inputs:      worker.Pointers(resourceClaims()...),
	Writes:      worker.Pointers(placesOf(runningLists, []string{"resources"})...),
	Description: "Adds requests and limits that containers lack.",
}

var resourcesSchema = json.RawMessage(`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",` +
	`"properties":{"requests":{"$ref":"#/$defs/amounts"},"limits":{"$ref":"#/$defs/amounts"}},"additionalProperties":false,` +
	`"$defs":{"amounts":{"type":"object","propertyNames":{"enum":["cpu","memory","ephemeral-storage"]},` +
	`"additionalProperties":{"type":["string","number"]}}}}`)

// defaultable is what can be requested below its limit. Huge pages and extended resources cannot: "you cannot
// overcommit".
var defaultable = []string{"cpu", "memory", "ephemeral-storage"}

// amounts are quantities by resource.
type amounts struct{ ordered[amount] }

// UnmarshalJSON reads an object of resources that can have a default.
func (a *amounts) UnmarshalJSON(text []byte) error {
	if err := a.ordered.UnmarshalJSON(text); err != nil {
		return err
	}
	var wrong worker.SettingsErrors
	for _, one := range a.entries {
		if !slices.Contains(defaultable, one.name) {
			wrong = append(wrong, worker.SettingsError{Pointer: worker.Pointer(one.name), Message: fmt.Sprintf("must be one of %v", defaultable)})
		}
	}
	if len(wrong) > 0 {
		return wrong
	}
	return nil
}

// amount is a quantity as it is written.
type amount string

// UnmarshalJSON reads a string or a number.
func (a *amount) UnmarshalJSON(text []byte) error {
	if text[0] == '"' {
		return json.Unmarshal(text, (*string)(a))
	}
	var number json.Number
	if err := json.Unmarshal(text, &number); err != nil || number == "" {
		return errors.New(`must be a string or a number such as "100m" or 0.5`)
	}
	*a = amount(number)
	return nil
}

func resourceClaims() []string {
	claims := claimsOn(runningLists, []string{"name", "resources"})
	for _, path := range podSpecPaths {
		claims = append(claims, worker.Pointer("object")+pointerOf(path...)+worker.Pointer("resources"))
	}
	return claims
}

// checkDefaultResources says what is no quantity, is negative, or contradicts the other default.
func checkDefaultResources(settings DefaultResourcesSettings, findings *worker.Findings) {
	values := map[string]map[string]*big.Rat{"requests": {}, "limits": {}}
	for _, kind := range []struct {
		name     string
		defaults amounts
	}{{"requests", settings.Requests}, {"limits", settings.Limits}} {
		for _, one := range kind.defaults.entries {
			value, err := quantity(string(one.value))
			if err != nil {
				findings.Error(worker.Pointer(kind.name, one.name), err.Error())
				continue
			}
			values[kind.name][one.name] = value
			if value.Sign() < 0 {
				findings.Error(worker.Pointer(kind.name, one.name), fmt.Sprintf("must not be negative, is %s", one.value))
			}
		}
	}
	for _, one := range settings.Requests.entries {
		request, limit := values["requests"][one.name], values["limits"][one.name]
		if request != nil && limit != nil && request.Cmp(limit) > 0 {
			written, _ := settings.Limits.get(one.name)
			findings.Error(worker.Pointer("requests", one.name), fmt.Sprintf("the default request %s exceeds the default limit %s", one.value, written))
		}
	}
}

func defaultResources(_ context.Context, request *worker.Request, settings DefaultResourcesSettings) (worker.Answer, error) {
	path := podSpecPath(request)
	if path == nil || !isWritten(request) {
		return nil, nil
	}
	whole, err := objectOf(request)
	if err != nil || !isEmpty(objectIn(whole, path...)["resources"]) {
		return nil, err
	}
	found, err := containersOf(request, runningLists)
	if err != nil {
		return nil, err
	}
	var operations []worker.Operation
	var warnings []string
	for _, one := range found {
		if one.before != nil && untouched(one.before["resources"], one.value["resources"]) {
			continue
		}
		added, left := settings.missingIn(one)
		warnings = append(warnings, left...)
		operations = append(operations, added.operations(one)...)
	}
	return worker.Patch(operations...).WithWarnings(warnings...), nil
}

func untouched(before, now any) bool {
	return isEmpty(before) && isEmpty(now) || equal(before, now)
}

// additions are the defaults that a container lacks.
type additions struct{ requests, limits ordered[string] }

// missingIn a container; a default that cannot stand becomes a warning.
func (s DefaultResourcesSettings) missingIn(one container) (added additions, warnings []string) {
	resources := objectIn(one.value, "resources")
	requests, limits := objectIn(resources, "requests"), objectIn(resources, "limits")
	for _, wanted := range s.Requests.entries {
		if _, has := requests[wanted.name]; has {
			continue
		}
		limit, has := limits[wanted.name]
		if fits(string(wanted.value), orElse(limit, has, wanted.value)) {
			added.requests.set(wanted.name, string(wanted.value))
			continue
		}
		written, _ := amountText(orElse(limit, has, wanted.value))
		warnings = append(warnings, fmt.Sprintf("%s: default %s request %s exceeds its limit %s: not set", one.field(), wanted.name, wanted.value, written))
	}
	for _, wanted := range s.Limits.entries {
		if _, has := limits[wanted.name]; has {
			continue
		}
		request, has := requests[wanted.name]
		if fits(orElse(request, has, wanted.value), string(wanted.value)) {
			added.limits.set(wanted.name, string(wanted.value))
			continue
		}
		written, _ := amountText(orElse(request, has, wanted.value))
		warnings = append(warnings, fmt.Sprintf("%s: default %s limit %s is below its request %s: not set", one.field(), wanted.name, wanted.value, written))
	}
	return added, warnings
}

func orElse(value any, has bool, otherwise amount) any {
	if has {
		return value
	}
	return string(otherwise)
}

// fits says whether a request does not exceed a limit. What is no quantity fits nothing; the API server will refuse
// it.
func fits(request, limit any) bool {
	called, is := amountText(request)
	most, isToo := amountText(limit)
	if !is || !isToo {
		return false
	}
	smaller, err := quantity(called)
	larger, wrong := quantity(most)
	return err == nil && wrong == nil && smaller.Cmp(larger) <= 0
}

// operations are the JSON Patch that adds them, with the objects that are missing on the way.
func (a additions) operations(one container) []worker.Operation {
	type kind struct {
		name   string
		values ordered[string]
	}
	var wanted []kind
	for _, each := range []kind{{"requests", a.requests}, {"limits", a.limits}} {
		if len(each.values.entries) > 0 {
			wanted = append(wanted, each)
		}
	}
	now := objectIn(one.value, "resources")
	var operations []worker.Operation
	var whole ordered[ordered[string]]
	for _, each := range wanted {
		switch {
		case now == nil:
			whole.set(each.name, each.values)
		case objectIn(now, each.name) == nil:
			operations = append(operations, worker.Add(one.pointer("resources", each.name), each.values))
		default:
			for _, value := range each.values.entries {
				operations = append(operations, worker.Add(one.pointer("resources", each.name, value.name), value.value))
			}
		}
	}
	if len(whole.entries) > 0 {
		operations = append(operations, worker.Add(one.pointer("resources"), whole))
	}
	return operations
}
