package worker_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"admission-gateway.dev/worker"
)

type labelSettings struct {
	Key string `json:"key"`
}

var requiredLabel = worker.Policy[labelSettings]{
	Name: "required-label", Phase: worker.Validating, Inputs: worker.Pointers("/object/metadata/labels"),
	Judge: func(_ context.Context, request *worker.Request, settings labelSettings) (worker.Answer, error) {
		var object struct {
			Metadata struct {
				Name   string            `json:"name"`
				Labels map[string]string `json:"labels"`
			} `json:"metadata"`
		}
		is, err := request.Object(&object)
		if !is {
			return nil, err
		}
		if object.Metadata.Name != "" {
			return worker.Fail("it was shown what it does not claim"), nil
		}
		if _, has := object.Metadata.Labels[settings.Key]; has {
			return nil, nil
		}
		return worker.Deny("label " + settings.Key + " is required"), nil
	},
}

func TestReviewCallsAPolicyWithoutAServer(t *testing.T) {
	const labelled = `{"operation":"CREATE","object":{"metadata":{"name":"a","labels":{"team":"x"}}}}`
	for _, request := range []any{labelled, []byte(labelled), `{"kind":"AdmissionReview","request":` + labelled + `}`, map[string]any{"object": nil}} {
		if answer, err := requiredLabel.Review(t.Context(), request, labelSettings{"team"}); err != nil || !reflect.DeepEqual(answer, worker.Allow()) {
			t.Error(request, answer, err)
		}
	}
	answer, err := requiredLabel.Review(t.Context(), labelled, `{"key":"tier"}`)
	if err != nil || !reflect.DeepEqual(answer, worker.Deny("label tier is required")) {
		t.Error(answer, err)
	}
}

func TestReviewReturnsEveryError(t *testing.T) {
	var settings worker.SettingsErrors
	if _, err := requiredLabel.Review(t.Context(), "{}", nil); !errors.As(err, &settings) || settings[0].Pointer != "/key" {
		t.Error(err)
	}
	var document *worker.InvalidDocumentError
	for _, request := range []any{"", "[]", "null", `{"request":1}`, `{"operation":1}`} {
		if _, err := requiredLabel.Review(t.Context(), request, `{"key":"a"}`); !errors.As(err, &document) {
			t.Error(request, err)
		}
	}
	var invalid *worker.InvalidAnswerError
	changing := deciding("changes", worker.Validating, func(context.Context, *worker.Request) (worker.Answer, error) { return worker.Patch(), nil })
	if _, err := changing.Review(t.Context(), "{}", nil); !errors.As(err, &invalid) {
		t.Error(err)
	}
	changing.Name = "No Label"
	if _, err := changing.Review(t.Context(), "{}", nil); err == nil || !strings.Contains(err.Error(), "DNS-1123") {
		t.Error(err)
	}
}

func TestReviewShowsAPolicyOnlyItsInputs(t *testing.T) {
	const request = `{"uid":"u","operation":"CREATE","kind":{"kind":"Pod"},"dryRun":false,"name":"n","namespaceObject":{},` +
		`"object":{"spec":{"containers":[{"name":"a","image":"b","env":[1]},{"name":"c"},7],"volumes":[{}]}}}`
	for claim, wanted := range map[*worker.Claim]string{
		{}:                  `{"operation":"CREATE","kind":{"kind":"Pod"},"dryRun":false,"name":"n","object":{"spec":{"containers":[{"name":"a","image":"b","env":[1]},{"name":"c"},7],"volumes":[{}]}}}`,
		new(worker.Nothing): `{"operation":"CREATE","kind":{"kind":"Pod"},"dryRun":false}`,
		new(worker.Pointers("/object/spec/containers/*/image")):                              `{"operation":"CREATE","kind":{"kind":"Pod"},"dryRun":false,"object":{"spec":{"containers":[{"image":"b"},{},null]}}}`,
		new(worker.Pointers("/object/spec/containers/0", "/object/spec/containers/0/image")): `{"operation":"CREATE","kind":{"kind":"Pod"},"dryRun":false,"object":{"spec":{"containers":[{"name":"a","image":"b","env":[1]},{},null]}}}`,
		new(worker.Pointers("/namespaceObject", "/oldObject")):                               `{"operation":"CREATE","kind":{"kind":"Pod"},"dryRun":false,"namespaceObject":{}}`,
	} {
		var found, expected any
		policy := deciding("sees", worker.Validating, func(_ context.Context, request *worker.Request) (worker.Answer, error) {
			return nil, request.Document(&found)
		})
		policy.Inputs = *claim
		if _, err := policy.Review(t.Context(), request, nil); err != nil {
			t.Error(err)
		}
		decodeText(t, wanted, &expected)
		if !reflect.DeepEqual(found, expected) {
			t.Errorf("found  %v\nwanted %v", found, expected)
		}
	}
}
