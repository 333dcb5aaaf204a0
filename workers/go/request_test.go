package worker_test

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"admission-gateway.dev/worker"
)

// seen returns the request that a policy gets.
func seen(t *testing.T, document string) *worker.Request {
	t.Helper()
	var found *worker.Request
	policy := deciding("sees", worker.Validating, func(_ context.Context, request *worker.Request) (worker.Answer, error) {
		found = request
		return nil, nil
	})
	if outcome := served(t, worker.Options{}, policy).review(t, callAbout("sees", worker.Validating, document)); outcome.GetAllow() == nil {
		t.Fatal(outcome)
	}
	return found
}

func TestTheRequestHasTheMembersOfTheDocument(t *testing.T) {
	const document = `{"operation":"UPDATE","kind":{"group":"apps","version":"v1","kind":"Deployment"},
		"resource":{"group":"apps","version":"v1","resource":"deployments"},"subResource":"scale",
		"requestKind":{"group":"apps","version":"v1beta1","kind":"Deployment"},
		"requestResource":{"group":"apps","version":"v1beta1","resource":"deployments"},"requestSubResource":"scale",
		"name":"a","namespace":"b","userInfo":{"username":"u","uid":"1","groups":["g"],"extra":{"k":["v"]}},"dryRun":true,
		"object":{"a":1},"oldObject":{"a":2},"options":{"a":3},"namespaceObject":{"a":4},"unknown":[]}`
	found := seen(t, document)
	dryRun := true
	wanted := &worker.Request{
		UID: "uid-1", Raw: json.RawMessage(document), Operation: "UPDATE",
		Kind:        &worker.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
		Resource:    &worker.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
		SubResource: "scale", RequestSubResource: "scale", Name: "a", Namespace: "b", DryRun: &dryRun,
		RequestKind:     &worker.GroupVersionKind{Group: "apps", Version: "v1beta1", Kind: "Deployment"},
		RequestResource: &worker.GroupVersionResource{Group: "apps", Version: "v1beta1", Resource: "deployments"},
		UserInfo:        &worker.UserInfo{Username: "u", UID: "1", Groups: []string{"g"}, Extra: map[string][]string{"k": {"v"}}},
		RawObject:       json.RawMessage(`{"a":1}`), RawOldObject: json.RawMessage(`{"a":2}`),
		RawOptions: json.RawMessage(`{"a":3}`), RawNamespaceObject: json.RawMessage(`{"a":4}`),
	}
	if !reflect.DeepEqual(found, wanted) {
		t.Errorf("found  %+v\nwanted %+v", found, wanted)
	}
	for number, decode := range []func(any) (bool, error){found.Object, found.OldObject, found.Options, found.NamespaceObject} {
		var part struct {
			A int `json:"a"`
		}
		if is, err := decode(&part); !is || err != nil || part.A != number+1 {
			t.Error(number, is, err, part)
		}
	}
	var whole struct {
		Unknown []any `json:"unknown"`
	}
	if err := found.Document(&whole); err != nil || whole.Unknown == nil {
		t.Error(err, whole)
	}
	if text := found.String(); strings.Contains(text, "Deployment") || !strings.Contains(text, "uid-1") {
		t.Error(text)
	}
}

func TestAbsentMembersEqualNull(t *testing.T) {
	absent := seen(t, `{}`)
	for _, found := range []*worker.Request{absent, seen(t, `{"operation":null,"kind":null,"object":null,"oldObject":null,"dryRun":null,"userInfo":null,"name":null}`)} {
		object := map[string]any{"left": "alone"}
		if is, err := found.Object(&object); is || err != nil || len(object) != 1 {
			t.Error(is, err, object)
		}
		if found.Operation != "" || found.Kind != nil || found.DryRun != nil || found.UserInfo != nil || found.Name != "" {
			t.Error(found)
		}
	}
}

func TestMembersAreCaseSensitiveAsInKubernetes(t *testing.T) {
	found := seen(t, `{"operation":"CREATE","Operation":"DELETE","object":{"spec":1,"Spec":2,"SPEC":3}}`)
	var object struct {
		Spec int `json:"spec"`
	}
	if is, err := found.Object(&object); !is || err != nil || object.Spec != 1 || found.Operation != "CREATE" {
		t.Error(is, err, object, found.Operation)
	}
}
