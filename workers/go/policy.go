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

// What a policy is. A mistake in one is the author's, and shows at the start: nothing is served until all policies
// are sound.

// Phase is one of Kubernetes' two admission phases.
type Phase int32

const (
	// Validating policies allow or deny, and change nothing.
	Validating = Phase(workerv1.Phase_PHASE_VALIDATING)
	// Mutating policies allow, perhaps with a change, or deny.
	Mutating = Phase(workerv1.Phase_PHASE_MUTATING)
)

// String is the phase's name in Kubernetes.
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

// Policy is a function with all that the gateway has to know of it. S is the type of its settings, a struct whose
// members have json tags; [NoSettings] where there are none.
type Policy[S any] struct {
	// Name is a DNS-1123 label, as the configuration's policy names it.
	Name string
	// Phase is Validating or Mutating.
	Phase Phase
	// Judge is the function. It runs in a goroutine of its own, and ctx is done when nobody waits for the answer
	// any more. A nil answer is Allow(). An error, like a panic, is a failure: its type reaches the operator, its
	// text stays in the worker's log. Settings are kept and shared between calls: do not change them.
	Judge func(ctx context.Context, request *Request, settings S) (Answer, error)

	// Check says what is wrong with settings, as far as their type cannot say it; nil: nothing.
	Check func(settings S, findings *Findings)
	// Schema is a JSON Schema (2020-12) of the settings; nil: one that is made of their type.
	Schema json.RawMessage
	// AllowUnknownSettings makes unknown members of the settings warnings in place of errors.
	AllowUnknownSettings bool

	// Inputs are which parts of the AdmissionRequest it reads. The policy is sent no more than that, and verdicts
	// are cached by it. The zero value says nothing.
	Inputs Claim
	// Writes are which parts of the object it may change, as JSON Pointers over the object. Mutating policies only.
	Writes Claim
	// Version is its own, where it changes more rarely than the worker's.
	Version string
	// Description is for the operator: one or two sentences.
	Description string
}

// Registration is a [Policy] of whatever settings.
type Registration interface {
	registered() (*policy, error)
}

// policy is a Policy that is sound, without its type of settings.
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

// dnsLabel is RFC 1123's label as Kubernetes has it: "at most 63 characters, only lowercase alphanumeric characters
// or '-', start and end with an alphanumeric character".
var dnsLabel = regexp.MustCompile(`\A[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\z`)

func (p Policy[S]) registered() (*policy, error) {
	if err := p.sound(); err != nil {
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

// sound says what a policy lacks.
func (p Policy[S]) sound() error {
	kind := bare(reflect.TypeFor[S]())
	switch {
	case !dnsLabel.MatchString(p.Name):
		return fmt.Errorf("policy %q: the name must be a DNS-1123 label such as \"required-labels\"", p.Name)
	case p.Phase != Validating && p.Phase != Mutating:
		return fmt.Errorf("policy %s: the phase must be Validating or Mutating, is %s", p.Name, p.Phase)
	case p.Judge == nil:
		return fmt.Errorf("policy %s: it has no function: set Judge", p.Name)
	case p.Phase == Validating && (p.Writes.everything || p.Writes.listed):
		return fmt.Errorf("policy %s: writes: a validating policy changes nothing; make it Mutating, or take Writes away", p.Name)
	case kind.Kind() != reflect.Struct && kind.Kind() != reflect.Map && !readsItself(kind):
		return fmt.Errorf("policy %s: settings must be a type that is a JSON object, such as a struct, is %s", p.Name, kind)
	case p.Schema != nil && (!json.Valid(p.Schema) || kindOf(p.Schema) != "an object"):
		return fmt.Errorf("policy %s: the schema of its settings must be a JSON object", p.Name)
	case !utf8.ValidString(p.Version + p.Description):
		return fmt.Errorf("policy %s: its version and description must be UTF-8", p.Name)
	}
	return nil
}

// message is what Describe says about it.
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

// Worker holds policies and serves them.
type Worker struct {
	name     string
	version  string
	policies []*policy
	byName   map[string]*policy
}

// New makes a worker.
//
//   - name: for logs, such as labels. It need not be the name that the gateway's configuration gives it.
//   - version: of the worker's build, such as 1.4.2 or a commit. It must change whenever a verdict may change: it is
//     part of the key under which verdicts are cached.
//   - policies: each a [Policy].
//
// The error names all mistakes: a version that is missing, a name that is no DNS-1123 label or is taken, a claim
// that is no place in a request, a policy without a function.
func New(name, version string, policies ...Registration) (*Worker, error) {
	made := &Worker{name: name, version: version, byName: map[string]*policy{}}
	var wrong []error
	if version == "" || !utf8.ValidString(name+version) {
		wrong = append(wrong, fmt.Errorf("worker %q: a version is required, such as \"1.0.0\"; verdicts are cached by it", name))
	}
	for _, registration := range policies {
		if registration == nil {
			wrong = append(wrong, fmt.Errorf("worker %s: one of its policies is nil", name))
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
