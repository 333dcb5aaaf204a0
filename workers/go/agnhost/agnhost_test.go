package agnhost

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"

	"admission-gateway.dev/worker"
)

// recorded has requests, and what agnhost itself answered to them (Kubernetes 1.36.3, test/images/agnhost/webhook), one
// case a line; the rest is here.
const recorded = "../../../tests/conformance/agnhost_webhook_io.jsonl"

type reviewer interface {
	Review(ctx context.Context, request, settings any) (worker.Answer, error)
}

var byName = map[string]reviewer{
	"always-allow-delay-5s": alwaysAllowDelay, "always-deny": alwaysDeny, "add-label": addLabel, "pods": pods, "pods-attach": podsAttach,
	"mutating-pods": mutatingPods, "mutating-pods-sidecar": mutatingPodsSidecar, "configmaps": configMaps, "mutating-configmaps": mutatingConfigMaps,
	"custom-resource": customResource, "mutating-custom-resource": mutatingCustomResource, "crd": customResourceDefinitions,
}

// answer of a policy to a request; the delay is none.
func answer(t *testing.T, policy, request, settings string) worker.Answer {
	t.Helper()
	if policy == "always-allow-delay-5s" {
		settings = `{"seconds":0}`
	}
	found, err := byName[policy].Review(t.Context(), request, settings)
	if err != nil {
		t.Fatal(policy, err)
	}
	return found
}

func TestEachAnswerEqualsAgnhosts(t *testing.T) {
	text, err := os.ReadFile(recorded)
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for line := range bytes.Lines(text) {
		var one struct {
			Name, Route   string
			ReviewVersion string
			Flags         struct {
				Image string `json:"sidecar-image"`
			}
			Request struct {
				Body json.RawMessage
			}
			Expected struct {
				DecodedPatch any
				Body         struct {
					Response struct {
						Allowed bool
						Status  struct {
							Message, Reason string
							Code            int32
						}
					}
				}
			}
		}
		// The first line says what the file is; reviews without a version are about HTTP.
		if err := json.Unmarshal(line, &one); err != nil || one.ReviewVersion == "" {
			continue
		}
		compared++
		policy := strings.ReplaceAll(strings.TrimPrefix(one.Route, "/"), "/", "-")
		settings := "{}"
		if one.Flags.Image != "" && policy == "mutating-pods-sidecar" {
			settings = `{"image":"` + one.Flags.Image + `"}`
		}
		wanted := one.Expected.Body.Response
		switch found := answer(t, policy, string(one.Request.Body), settings).(type) {
		case worker.Allowed:
			var patch any
			if found.Change != nil {
				_ = json.Unmarshal(found.Change.JSON, &patch)
			}
			if !wanted.Allowed || !reflect.DeepEqual(patch, one.Expected.DecodedPatch) {
				t.Errorf("%s, %s: %v, wanted %+v", policy, one.Name, patch, one.Expected)
			}
		case worker.Denied:
			code := max(wanted.Status.Code, 400) // no code: the API server makes 400 of it
			if wanted.Allowed || found.Message != wanted.Status.Message || found.Reason != wanted.Status.Reason || found.Code != code {
				t.Errorf("%s, %s: %+v, wanted %+v", policy, one.Name, found, wanted)
			}
		}
	}
	if compared != 62 {
		t.Errorf("%d answers were compared", compared)
	}
}

func TestWhereAgnhostCrashesThePolicyPanics(t *testing.T) {
	for _, policy := range []string{"configmaps", "mutating-configmaps", "mutating-pods", "mutating-pods-sidecar"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s should panic", policy)
				}
			}()
			settings := "{}"
			if policy == "mutating-pods-sidecar" {
				settings = `{"image":"x"}`
			}
			_, _ = byName[policy].Review(t.Context(), `{"resource":{"group":"apps","version":"v1","resource":"deployments"},"object":{}}`, settings)
		}()
	}
}

func TestOtherResourcesAreDeniedAsByAgnhost(t *testing.T) {
	const foreign = `{"name":"to-be-attached-pod","resource":{"group":"apps","version":"v1","resource":"deployments"},"object":{}}`
	for policy, wanted := range map[string]string{
		"pods":        "expect resource to be { v1 pods}",
		"pods-attach": "expect resource to be { v1 pods}, got {apps v1 deployments}",
		"crd": "expect resource to be one of [{apiextensions.k8s.io v1beta1 customresourcedefinitions}, " +
			"{apiextensions.k8s.io v1 customresourcedefinitions}] but got {apps v1 deployments}",
	} {
		if found := answer(t, policy, foreign, "{}"); !reflect.DeepEqual(found, denied(wanted)) {
			t.Error(policy, found)
		}
	}
}

func TestWaitForeverEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	const request = `{"resource":{"version":"v1","resource":"pods"},"object":{"metadata":{"labels":{"webhook-e2e-test":"wait-forever"}}}}`
	if _, err := pods.Review(ctx, request, "{}"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestTheDelayEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := alwaysAllowDelay.Review(ctx, "{}", "{}"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestDataThatAreNotStringsAreDeniedWithGosMessage(t *testing.T) {
	for data, wanted := range map[string]string{
		`[]`:         "json: cannot unmarshal array into Go struct field .Data of type map[string]string",
		`{"a":true}`: "json: cannot unmarshal bool into Go struct field .Data of type string",
		`{"a":{}}`:   "json: cannot unmarshal object into Go struct field .Data of type string",
	} {
		if found := answer(t, "custom-resource", `{"operation":"CREATE","object":{"data":`+data+`}}`, "{}"); !reflect.DeepEqual(found, denied(wanted)) {
			t.Error(data, found)
		}
	}
	if found := answer(t, "custom-resource", `{"operation":"CREATE","object":null}`, "{}"); !reflect.DeepEqual(found, denied(errNoObject)) {
		t.Error(found)
	}
}

func TestEveryRouteHasItsPolicy(t *testing.T) {
	made, err := worker.New(Name, Version, Policies()...)
	if err != nil || made == nil || len(Policies()) != len(byName) {
		t.Error(err)
	}
	for name := range byName {
		if strings.Contains(name, "/") {
			t.Error(name)
		}
	}
}
