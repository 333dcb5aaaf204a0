package samples

import (
	"context"

	"admission-gateway.dev/worker"
)

// default-labels adds missing labels, and never overwrites an existing one.
//
// It ignores subresources, whose objects have no labels of their own or cannot change them.

// DefaultLabelsSettings are the settings of default-labels.
type DefaultLabelsSettings struct {
	// Labels are the labels to add, with their values.
	Labels ordered[string] `json:"labels"`
}

// DefaultLabels is the policy.
var DefaultLabels = worker.Policy[DefaultLabelsSettings]{
	Name:        "default-labels",
	Phase:       worker.Mutating,
	Judge:       defaultLabels,
	Check:       checkDefaultLabels,
	Schema:      labelsSchema,
	Inputs:      worker.Pointers("/object/metadata/labels"),
	Writes:      worker.Pointers("/metadata/labels"),
	Description: "Adds labels that an object lacks.",
}

// checkDefaultLabels reports labels that Kubernetes would reject.
func checkDefaultLabels(settings DefaultLabelsSettings, findings *worker.Findings) {
	for _, label := range settings.Labels.entries {
		if !isLabelKey(label.name) {
			findings.Error(worker.Pointer("labels", label.name), quoted(label.name)+" cannot be a label's key")
		}
		if !isLabelValue(label.value) {
			findings.Error(worker.Pointer("labels", label.name), quoted(label.value)+" cannot be a label's value")
		}
	}
}

func defaultLabels(_ context.Context, request *worker.Request, settings DefaultLabelsSettings) (worker.Answer, error) {
	found, err := objectOf(request)
	if found == nil || !isWritten(request) || request.SubResource != "" || len(settings.Labels.entries) == 0 {
		return nil, err
	}
	metadata := objectIn(found, "metadata")
	if metadata == nil {
		return worker.Patch(worker.Add("/metadata", map[string]any{"labels": settings.Labels})), nil
	}
	labels := objectIn(metadata, "labels")
	if labels == nil {
		return worker.Patch(worker.Add("/metadata/labels", settings.Labels)), nil
	}
	var operations []worker.Operation
	for _, label := range settings.Labels.entries {
		if _, has := labels[label.name]; !has {
			operations = append(operations, worker.Add(worker.Pointer("metadata", "labels", label.name), label.value))
		}
	}
	return worker.Patch(operations...), nil
}
