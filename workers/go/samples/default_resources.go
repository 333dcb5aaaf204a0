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

// default-resources adds missing requests and limits to containers and init containers.
//
// "If a limit is specified, but no request, ... the request defaults to the limit", and "a request must be less than
// or equal to the limit", says Kubernetes. So the policy omits a default with which a request would exceed its limit,
// and warns the user. It ignores containers whose resources an UPDATE does not change (those of Pods and Jobs are
// immutable), and Pods with resources of their own (spec.resources), which their containers share.

// DefaultResourcesSettings are the settings of default-resources.
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

// defaultable are the resources whose request may be below the limit. For huge pages and extended resources "you
// cannot overcommit".
var defaultable = []string{"cpu", "memory", "ephemeral-storage"}

// amounts are quantities by resource.
type amounts struct{ ordered[amount] }

// UnmarshalJSON decodes an object of resources that can have a default.
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

// amount is a quantity as written.
type amount string

// UnmarshalJSON decodes a string or a number.
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

// checkDefaultResources reports defaults that are invalid, negative, or contradict each other.
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

// missingIn returns the defaults that a container lacks, and a warning for each that cannot be added.
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

// fits reports whether a request is at most its limit. An invalid quantity never fits; the API server will reject it.
func fits(request, limit any) bool {
	smallerText, is := amountText(request)
	largerText, isToo := amountText(limit)
	if !is || !isToo {
		return false
	}
	smaller, err := quantity(smallerText)
	larger, wrong := quantity(largerText)
	return err == nil && wrong == nil && smaller.Cmp(larger) <= 0
}

// operations returns the JSON Patch that adds the defaults, with missing parent objects.
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
