package samples

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"admission-gateway.dev/worker"
)

// required-labels denies objects without the required labels, or with values that do not match.
//
// One denial reports all labels. The policy ignores DELETE and CONNECT, which have no object, and subresources: a
// Scale has no labels of its own, and a client cannot label a Node through its status.

// RequiredLabelsSettings are the settings of required-labels.
type RequiredLabelsSettings struct {
	// Labels has for each required key a regular expression (RE2) that the whole value must match, or "" for any
	// value.
	Labels ordered[pattern] `json:"labels"`
}

// RequiredLabels is the policy.
var RequiredLabels = worker.Policy[RequiredLabelsSettings]{
	Name:        "required-labels",
	Phase:       worker.Validating,
	Judge:       requiredLabels,
	Check:       checkRequiredLabels,
	Schema:      labelsSchema,
	Inputs:      worker.Pointers("/object/metadata/labels"),
	Description: "Denies objects that lack a required label, or whose label does not match.",
}

var labelsSchema = json.RawMessage(`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",` +
	`"properties":{"labels":{"type":"object","additionalProperties":{"type":"string"}}},` +
	`"required":["labels"],"additionalProperties":false}`)

// pattern is a regular expression for a whole value, or "" for any; compiled when the settings are converted.
type pattern struct {
	text  string
	whole *regexp.Regexp // nil: invalid
}

// UnmarshalJSON decodes the expression. The check reports an invalid one, together with its key.
func (p *pattern) UnmarshalJSON(text []byte) error {
	if text[0] != '"' {
		return errText
	}
	if err := json.Unmarshal(text, &p.text); err != nil {
		return err
	}
	if _, err := regexp.Compile(p.text); err == nil { // without the group, in which "a)|(b" would compile
		p.whole, _ = regexp.Compile(`\A(?:` + p.text + `)\z`)
	}
	return nil
}

func checkRequiredLabels(settings RequiredLabelsSettings, findings *worker.Findings) {
	for _, label := range settings.Labels.entries {
		place := worker.Pointer("labels", label.name)
		if !isLabelKey(label.name) {
			findings.Error(place, quoted(label.name)+" cannot be a label's key")
		}
		if label.value.whole == nil {
			findings.Error(place, quoted(label.value.text)+" is no regular expression (RE2 syntax)")
		}
	}
}

func requiredLabels(_ context.Context, request *worker.Request, settings RequiredLabelsSettings) (worker.Answer, error) {
	found, err := objectOf(request)
	if found == nil || !isWritten(request) || request.SubResource != "" {
		return nil, err
	}
	labels := objectIn(found, "metadata", "labels")
	texts := membersIn(request.RawObject, "metadata", "labels")
	var causes []worker.Cause
	var messages []string
	for _, wanted := range settings.Labels.entries {
		if cause, wrong := wrongLabel(wanted.name, wanted.value, labels, texts); wrong {
			causes = append(causes, cause)
			messages = append(messages, cause.Message)
		}
	}
	if len(causes) == 0 {
		return nil, nil
	}
	return worker.Deny(strings.Join(messages, "; ")).WithCauses(causes...), nil
}

func wrongLabel(key string, wanted pattern, labels object, texts map[string]json.RawMessage) (cause worker.Cause, wrong bool) {
	cause.Field = fmt.Sprintf("metadata.labels[%s]", key)
	value, is := labels[key]
	if !is {
		cause.Message = fmt.Sprintf("label %s is required", quoted(key))
		if wanted.text != "" {
			cause.Message += " with a value that matches " + quoted(wanted.text)
		}
		cause.Reason = "FieldValueRequired"
		return cause, true
	}
	if text, is := value.(string); is && (wanted.text == "" || wanted.whole.MatchString(text)) {
		return cause, false
	}
	cause.Message = fmt.Sprintf("label %s is %s and must match %s", quoted(key), compact(texts[key]), quoted(wanted.text))
	cause.Reason = "FieldValueInvalid"
	return cause, true
}
