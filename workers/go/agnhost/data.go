package agnhost

import (
	"context"
	"encoding/json"

	"admission-gateway.dev/worker"
)

// Policies for the data of ConfigMaps and custom resources, and for labels of any object.

var configMapResource = worker.GroupVersionResource{Version: "v1", Resource: "configmaps"}

const (
	configMapData      = "ConfigMap.data"
	customResourceData = ".Data"
)

var configMaps = worker.Policy[worker.NoSettings]{
	Name: "configmaps", Phase: worker.Validating,
	Description: "Denies ConfigMaps with unwanted data, and the deletion of some.",
	Judge: func(_ context.Context, request *worker.Request, _ worker.NoSettings) (worker.Answer, error) {
		if resourceOf(request) != configMapResource {
			crash(configMapResource)
		}
		return judgedData(request, configMapData,
			"the configmap contains unwanted key and value",
			"the configmap cannot be deleted because it contains unwanted key and value"), nil
	},
}

var customResource = worker.Policy[worker.NoSettings]{
	Name: "custom-resource", Phase: worker.Validating,
	Description: "Denies custom resources with unwanted data, and the deletion of some.",
	Judge: func(_ context.Context, request *worker.Request, _ worker.NoSettings) (worker.Answer, error) {
		return judgedData(request, customResourceData,
			"the custom resource contains unwanted data",
			"the custom resource cannot be deleted because it contains unwanted key and value"), nil
	},
}

func judgedData(request *worker.Request, place, unwanted, undeletable string) worker.Answer {
	data, wrong := dataOf(judgedObject(request), place)
	if wrong != "" {
		return denied(wrong)
	}
	switch value, operation := data["webhook-e2e-test"], request.Operation; {
	case value == "webhook-disallow" && (operation == "CREATE" || operation == "UPDATE"):
		return deniedFor(unwanted)
	case value == "webhook-nondeletable" && operation == "DELETE":
		return deniedFor(undeletable)
	default:
		return nil
	}
}

var mutatingConfigMaps = worker.Policy[worker.NoSettings]{
	Name: "mutating-configmaps", Phase: worker.Mutating,
	Description: "Changes the data of ConfigMaps in two stages.",
	Judge: func(_ context.Context, request *worker.Request, _ worker.NoSettings) (worker.Answer, error) {
		if resourceOf(request) != configMapResource {
			crash(configMapResource)
		}
		return stagedData(request, configMapData), nil
	},
}

var mutatingCustomResource = worker.Policy[worker.NoSettings]{
	Name: "mutating-custom-resource", Phase: worker.Mutating,
	Description: "Changes the data of custom resources in two stages.",
	Judge: func(_ context.Context, request *worker.Request, _ worker.NoSettings) (worker.Answer, error) {
		return stagedData(request, customResourceData), nil
	},
}

// stagedData depends on order: the second stage requires the key of the first.
func stagedData(request *worker.Request, place string) worker.Answer {
	data, wrong := dataOf(request.RawObject, place)
	switch {
	case wrong != "":
		return denied(wrong)
	case data["mutation-stage-1"] == "yes":
		return worker.Patch(worker.Add("/data/mutation-stage-2", "yes"))
	case data["mutation-start"] == "yes":
		return worker.Patch(worker.Add("/data/mutation-stage-1", "yes"))
	default:
		return nil
	}
}

var addLabel = worker.Policy[worker.NoSettings]{
	Name: "add-label", Phase: worker.Mutating,
	Description: "Adds the label added-label: yes to any object.",
	Judge: func(_ context.Context, request *worker.Request, _ worker.NoSettings) (worker.Answer, error) {
		if isAbsent(request.RawObject) {
			return denied(errNoObject), nil
		}
		var found struct {
			Metadata struct {
				Labels map[string]string `json:"labels"`
			} `json:"metadata"`
		}
		if err := json.Unmarshal(request.RawObject, &found); err != nil {
			return denied(err.Error()), nil
		}
		labels := found.Metadata.Labels
		value, has := labels["added-label"]
		switch {
		case len(labels) == 0:
			return worker.Patch(worker.Add("/metadata/labels", map[string]string{"added-label": "yes"})), nil
		case !has:
			return worker.Patch(worker.Add("/metadata/labels/added-label", "yes")), nil
		case value != "yes":
			return worker.Patch(worker.Replace("/metadata/labels/added-label", "yes")), nil
		default:
			return nil, nil
		}
	},
}
