package worker

import (
	"context"
	"encoding/json"
	"fmt"
)

// Test a policy without a server: a request and settings in, its answer out.

// Review is what the policy answers to a request, for tests:
//
//	answer, err := requiredLabel.Review(t.Context(), `{"operation": "CREATE", "object": {"metadata": {}}}`, `{"key": "team"}`)
//
// The policy is sent what the gateway would send it: no more than it claims as its inputs. So a policy that reads
// what it does not claim fails its tests, and not its first day in a cluster.
//
//   - request: an AdmissionRequest in its JSON shape, or the parts of it that matter, or a whole AdmissionReview, as
//     recorded from a cluster: JSON text (string, []byte), or a value that becomes JSON, such as an
//     admissionv1.AdmissionRequest.
//   - settings: as the operator would write them, likewise; nil: {}.
//
// The error is a mistake in the policy ([New]), [SettingsErrors], an [InvalidDocumentError], an
// [InvalidAnswerError], or what the policy returns. A nil answer of the policy comes as Allow(); a panic comes
// through.
func (p Policy[S]) Review(ctx context.Context, request, settings any) (Answer, error) {
	held, err := p.registered()
	if err != nil {
		return nil, err
	}
	if settings == nil {
		settings = "{}"
	}
	text, err := jsonText(settings)
	if err != nil {
		return nil, fmt.Errorf("the settings: %w", err)
	}
	converted, _, wrong := held.settings(text)
	if len(wrong) > 0 {
		return nil, wrong
	}
	called, err := held.request(request)
	if err != nil {
		return nil, err
	}
	answer, err := held.judge(ctx, called, converted)
	if err == nil && answer == nil {
		answer = Allow()
	}
	if err == nil {
		err = acceptable(answer, held.phase)
	}
	if err != nil {
		return nil, err
	}
	return answer, nil
}

// request is what the policy would be sent of a whole one.
func (p *policy) request(whole any) (*Request, error) {
	text, err := jsonText(whole)
	if err != nil {
		return nil, fmt.Errorf("the request: %w", err)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil || members == nil {
		return nil, &InvalidDocumentError{"the request is not one JSON object"}
	}
	if inside, is := members["request"]; is {
		members = nil
		if err := json.Unmarshal(inside, &members); err != nil {
			return nil, &InvalidDocumentError{"the review's request is not one JSON object"}
		}
	}
	var uid string
	_ = json.Unmarshal(members["uid"], &uid) // for logs; there may be none
	return newRequest(written(projected(members, p.inputs)), uid)
}

func jsonText(value any) ([]byte, error) {
	switch text := value.(type) {
	case string:
		return []byte(text), nil
	case []byte:
		return text, nil
	case json.RawMessage:
		return text, nil
	default:
		return encoded(value)
	}
}
