package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"unicode/utf8"

	"admission-gateway.dev/worker/workerv1"
)

// Policies and their registration. The worker validates all policies before it serves, so that an author sees errors
// at the start.

// Phase is an admission phase of Kubernetes.
type Phase int32

const (
	// Validating policies allow or deny, and change nothing.
	Validating = Phase(workerv1.Phase_PHASE_VALIDATING)
	// Mutating policies allow, perhaps with a change, or deny.
	Mutating = Phase(workerv1.Phase_PHASE_MUTATING)
)

// String returns Kubernetes' name of the phase.
func (p Phase) String() string {
	switch p {
	case Validating:
		return "the validating phase"
	case Mutating:
		return "the mutating phase"
	default:
		return fmt.Sprintf("no phase (%d)", int32(p))
	}
}

// Policy is a function with its registration. S is the type of its settings, a struct with json tags, or
// [NoSettings].
type Policy[S any] struct {
	// Name is a DNS-1123 label. The gateway's configuration names it in policy.
	Name string
	// Phase is Validating or Mutating.
	Phase Phase
	// Judge is the function. It runs in a goroutine of its own; ctx is done when the gateway no longer waits for the
	// answer. A nil answer is Allow(). An error, like a panic, is a failure: the operator sees its type; its text
	// stays in the worker's log. Settings are cached and shared between calls: do not modify them.
	Judge func(ctx context.Context, request *Request, settings S) (Answer, error)

	// Check reports errors in settings that their type does not express; nil: no check.
	Check func(settings S, findings *Findings)
	// Schema is a JSON Schema (2020-12) of the settings; nil: it is generated from their type.
	Schema json.RawMessage
	// AllowUnknownSettings reports unknown members of the settings as warnings, not as errors.
	AllowUnknownSettings bool

	// Inputs are the fields of the AdmissionRequest that the policy reads. The gateway sends it only these, and
	// caches verdicts by them. Zero value: unset.
	Inputs Claim
	// Writes are the fields of the object that the policy may change, as JSON Pointers over the object. Mutating
	// policies only.
	Writes Claim
	// Version is the version of this policy, if it changes less often than the worker's.
	Version string
	// Description is one or two sentences for the operator.
	Description string
}

// Registration is a [Policy] with settings of any type.
type Registration interface {
	registered() (*policy, error)
}

// policy is a validated Policy, without the type parameter.
type policy struct {
	name        string
	phase       Phase
	version     string
	description string
	inputs      Claim
	writes      Claim
	schema      json.RawMessage
	settings    func(text []byte) (any, []string, SettingsErrors)
	judge       func(ctx context.Context, request *Request, settings any) (Answer, error)
}

// dnsLabel is a DNS label (RFC 1123) as Kubernetes defines it: "at most 63 characters, only lowercase alphanumeric
// characters or '-', start and end with an alphanumeric character".
var dnsLabel = regexp.MustCompile(`\A[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\z`)

func (p Policy[S]) registered() (*policy, error) {
	if err := p.validate(); err != nil {
		return nil, err
	}
	inputs, err := checkedInputs(p.Inputs, fmt.Sprintf("policy %s: inputs", p.Name))
	if err != nil {
		return nil, err
	}
	writes, err := checkedWrites(p.Writes, fmt.Sprintf("policy %s: writes", p.Name))
	if err != nil {
		return nil, err
	}
	schema := p.Schema
	if schema == nil {
		schema = schemaOf(reflect.TypeFor[S](), p.AllowUnknownSettings)
	}
	settings := settingsType[S]{loose: p.AllowUnknownSettings, check: p.Check}
	return &policy{
		name: p.Name, phase: p.Phase, version: p.Version, description: p.Description, inputs: inputs, writes: writes, schema: schema,
		settings: func(text []byte) (any, []string, SettingsErrors) { return settings.read(text) },
		judge: func(ctx context.Context, request *Request, settings any) (Answer, error) {
			return p.Judge(ctx, request, settings.(S))
		},
	}, nil
}

// validate returns the first error of a policy.
func (p Policy[S]) validate() error {
	kind := bare(reflect.TypeFor[S]())
	switch {
	case !dnsLabel.MatchString(p.Name):
		return fmt.Errorf("policy %q: the name must be a DNS-1123 label such as \"required-labels\"", p.Name)
	case p.Phase != Validating && p.Phase != Mutating:
		return fmt.Errorf("policy %s: the phase must be Validating or Mutating, is %s", p.Name, p.Phase)
	case p.Judge == nil:
		return fmt.Errorf("policy %s: it has no function: set Judge", p.Name)
	case p.Phase == Validating && (p.Writes.everything || p.Writes.listed):
		return fmt.Errorf("policy %s: writes: a validating policy changes nothing; make it Mutating, or remove Writes", p.Name)
	case kind.Kind() != reflect.Struct && kind.Kind() != reflect.Map && !readsItself(kind):
		return fmt.Errorf("policy %s: the type of settings must encode to a JSON object, such as a struct, is %s", p.Name, kind)
	case p.Schema != nil && (!json.Valid(p.Schema) || kindOf(p.Schema) != "an object"):
		return fmt.Errorf("policy %s: the schema of its settings must be a JSON object", p.Name)
	case !utf8.ValidString(p.Version + p.Description):
		return fmt.Errorf("policy %s: its version and description must be UTF-8", p.Name)
	}
	return nil
}

// message encodes the policy for Describe.
func (p *policy) message() *workerv1.PolicyDescription {
	return &workerv1.PolicyDescription{
		Name:           p.name,
		Version:        p.version,
		Phases:         []workerv1.Phase{workerv1.Phase(p.phase)},
		Inputs:         p.inputs.message(),
		Writes:         p.writes.message(),
		SettingsSchema: p.schema,
		Description:    p.description,
	}
}

// Worker is a named set of policies that can be served.
type Worker struct {
	name     string
	version  string
	policies []*policy
	byName   map[string]*policy
}

// New returns a worker.
//
//   - name: for logs, such as labels. It may differ from the worker's name in the gateway's configuration.
//   - version: of the worker's build, such as 1.4.2 or a commit. It is part of the cache key of verdicts, so it must
//     change whenever a verdict may change.
//   - policies: each a [Policy].
//
// The returned error joins all errors: a missing version, a name that is a duplicate or not a DNS-1123 label, an
// invalid claim, a policy without a function.
func New(name, version string, policies ...Registration) (*Worker, error) {
	made := &Worker{name: name, version: version, byName: map[string]*policy{}}
	var wrong []error
	if version == "" || !utf8.ValidString(name+version) {
		wrong = append(wrong, fmt.Errorf("worker %q: a version is required, such as \"1.0.0\"; verdicts are cached by it", name))
	}
	for _, registration := range policies {
		if registration == nil {
			wrong = append(wrong, fmt.Errorf("worker %s: a policy is nil", name))
			continue
		}
		registered, err := registration.registered()
		switch {
		case err != nil:
			wrong = append(wrong, err)
		case made.byName[registered.name] != nil:
			wrong = append(wrong, fmt.Errorf("worker %s: a policy %q is registered already", name, registered.name))
		default:
			made.byName[registered.name] = registered
			made.policies = append(made.policies, registered)
		}
	}
	return made, errors.Join(wrong...)
}
