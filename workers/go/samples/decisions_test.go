package samples

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"admission-gateway.dev/worker"
)

// The samples decide what the Python sample decides, to the letter: about every recorded request of a real
// kube-apiserver, and about what records lack. testdata/decisions.py makes the decisions; here the same policies
// are asked again.

const recordings = "../../../tests/recordings"

// reviewer is what a policy of any settings can do in a test.
type reviewer interface {
	Review(ctx context.Context, request, settings any) (worker.Answer, error)
}

var policies = map[string]reviewer{
	"required-labels":   RequiredLabels,
	"no-privileged":     NoPrivileged,
	"default-labels":    DefaultLabels,
	"default-resources": DefaultResources,
	"image-registry":    ImageRegistry,
	"sidecar":           Sidecar,
}

type decisions struct {
	Settings map[string][]json.RawMessage `json:"settings"`
	Wrong    []struct {
		Policy   string          `json:"policy"`
		Settings json.RawMessage `json:"settings"`
		Answer   json.RawMessage `json:"answer"`
	} `json:"wrong"`
	Decisions []struct {
		Name    string          `json:"name"`
		Request json.RawMessage `json:"request"`
		Answers []struct {
			Policy   string          `json:"policy"`
			Settings int             `json:"settings"`
			Answer   json.RawMessage `json:"answer"`
		} `json:"answers"`
	} `json:"decisions"`
}

func theDecisions(t *testing.T) decisions {
	t.Helper()
	text, err := os.ReadFile("testdata/decisions.json")
	if err != nil {
		t.Fatal(err)
	}
	var found decisions
	if err := json.Unmarshal(text, &found); err != nil {
		t.Fatal(err)
	}
	return found
}

// recorded is the AdmissionReview of a recording; false: it is another one's body.
func recorded(t *testing.T, path string) (json.RawMessage, bool) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var recording struct {
		Body string `json:"body"`
	}
	if err := json.Unmarshal(text, &recording); err != nil {
		t.Fatal(err)
	}
	return json.RawMessage(recording.Body), strings.Contains(recording.Body, `"request":`)
}

// answered is what a policy answers, in the shape of decisions.json.
func answered(t *testing.T, policy string, request, settings any) map[string]any {
	t.Helper()
	answer, err := policies[policy].Review(t.Context(), request, settings)
	var wrong worker.SettingsErrors
	if errors.As(err, &wrong) {
		var lines []any
		for _, one := range wrong {
			lines = append(lines, []any{one.Pointer, one.Message})
		}
		return map[string]any{"settings": lines}
	}
	if err != nil {
		t.Fatalf("%s: %v", policy, err)
	}
	switch said := answer.(type) {
	case worker.Denied:
		var causes []any
		for _, cause := range said.Causes {
			causes = append(causes, []any{cause.Field, cause.Message, cause.Reason})
		}
		return map[string]any{"code": said.Code, "reason": said.Reason, "message": said.Message, "causes": causes}
	case worker.Allowed:
		made := map[string]any{"patch": []any{}, "warnings": append([]string{}, said.Warnings...)}
		if said.Change != nil {
			made["patch"] = said.Change.JSON
		}
		return made
	default:
		t.Fatalf("%s: %v", policy, answer)
		return nil
	}
}

// canonical is JSON with its members in order of name, and its numbers as numbers.
func canonical(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var parsed any
	if err := json.Unmarshal(text, &parsed); err != nil {
		t.Fatal(err)
	}
	var made bytes.Buffer
	encoder := json.NewEncoder(&made)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(parsed); err != nil {
		t.Fatal(err)
	}
	return made.String()
}

func TestTheSamplesDecideWhatThePythonSampleDecides(t *testing.T) {
	expected := theDecisions(t)
	compared := 0
	for _, decision := range expected.Decisions {
		request := decision.Request
		if request == nil {
			request, _ = recorded(t, filepath.Join(recordings, decision.Name+".json"))
		}
		wanted := map[string]map[int]json.RawMessage{}
		for _, one := range decision.Answers {
			if wanted[one.Policy] == nil {
				wanted[one.Policy] = map[int]json.RawMessage{}
			}
			wanted[one.Policy][one.Settings] = one.Answer
		}
		for policy, several := range expected.Settings {
			for number, settings := range several {
				answer := wanted[policy][number]
				if answer == nil {
					answer = json.RawMessage(`{"patch":[],"warnings":[]}`)
				}
				compared++
				if found := canonical(t, answered(t, policy, request, settings)); found != canonical(t, answer) {
					t.Errorf("%s about %s with settings %d:\nfound  %swanted %s", policy, decision.Name, number, found, canonical(t, answer))
				}
			}
		}
	}
	if compared < 2000 {
		t.Errorf("only %d decisions were compared", compared)
	}
}

func TestNoRecordingIsLeftOut(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(recordings, "*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatal("there are no recordings: ", err)
	}
	known := map[string]bool{}
	for _, decision := range theDecisions(t).Decisions {
		known[decision.Name] = true
	}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		if _, is := recorded(t, path); is && !known[name] {
			t.Errorf("%s is not in decisions.json: run testdata/decisions.py", name)
		}
	}
}

func TestSettingsAreRefusedInTheSameWords(t *testing.T) {
	for _, one := range theDecisions(t).Wrong {
		if found := canonical(t, answered(t, one.Policy, "{}", one.Settings)); found != canonical(t, one.Answer) {
			t.Errorf("%s with %s:\nfound  %swanted %s", one.Policy, one.Settings, found, canonical(t, one.Answer))
		}
	}
}

func TestPatchesHaveTheOrderOfTheSettings(t *testing.T) {
	settings := `{"labels":{"z":"1","a":"2","m":"3"}}`
	for request, wanted := range map[string]string{
		`{"operation":"CREATE","object":{"metadata":{}}}`:            `[{"op":"add","path":"/metadata/labels","value":{"z":"1","a":"2","m":"3"}}]`,
		`{"operation":"CREATE","object":{"metadata":{"labels":{}}}}`: `[{"op":"add","path":"/metadata/labels/z","value":"1"},{"op":"add","path":"/metadata/labels/a","value":"2"},{"op":"add","path":"/metadata/labels/m","value":"3"}]`,
	} {
		answer, err := DefaultLabels.Review(t.Context(), request, settings)
		if allowed, is := answer.(worker.Allowed); !is || string(allowed.Change.JSON) != wanted {
			t.Error(answer, err)
		}
	}
}

func TestASidecarsContainerIsAddedAsItIsWritten(t *testing.T) {
	const container = `{"name":"p","z":1.0,"image":"<i>","a":9007199254740993}`
	answer, err := Sidecar.Review(t.Context(), `{"operation":"CREATE","kind":{"kind":"Pod"},"object":{"spec":{}}}`, `{"container":`+container+`}`)
	if allowed, is := answer.(worker.Allowed); !is || string(allowed.Change.JSON) != `[{"op":"add","path":"/spec/containers","value":[`+container+`]}]` {
		t.Error(answer, err)
	}
}

func TestEverySampleDescribesItself(t *testing.T) {
	if _, err := worker.New(Name, Version, Policies()...); err != nil {
		t.Error(err)
	}
	if len(Policies()) != len(policies) {
		t.Error("a policy is not tested")
	}
}
