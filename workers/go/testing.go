package worker

import (
	"context"
	"encoding/json"
	"fmt"
)

// Calls a policy without a server, for tests.

// Review calls the policy with a request, for tests:
//
//	answer, err := requiredLabel.Review(t.Context(), `{"operation": "CREATE", "object": {"metadata": {}}}`, `{"key": "team"}`)
//
// The policy gets the document that the gateway would send: only its inputs. So a policy that reads a field that it
// does not claim fails its tests, not in production.
//
//   - request: an AdmissionRequest, a part of it, or an AdmissionReview as recorded from a cluster: JSON text
//     (string, []byte), or a value that encodes to JSON, such as an admissionv1.AdmissionRequest.
//   - settings: as the operator writes them, in the same forms; nil: {}.
//
// The error is that of an invalid policy (see [New]), [SettingsErrors], an [InvalidDocumentError], an
// [InvalidAnswerError], or the error that the policy returns. For a nil answer Review returns Allow(). It does not
// recover panics.
func (p Policy[S]) Review(ctx context.Context, request, settings any) (Answer, error) {
	registered, err := p.registered()
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
	converted, _, wrong := registered.settings(text)
	if len(wrong) > 0 {
		return nil, wrong
	}
	prepared, err := registered.request(request)
	if err != nil {
		return nil, err
	}
	answer, err := registered.judge(ctx, prepared, converted)
	if err == nil && answer == nil {
		answer = Allow()
	}
	if err == nil {
		err = acceptable(answer, registered.phase)
	}
	if err != nil {
		return nil, err
	}
	return answer, nil
}

// request returns the part of a whole request that the gateway would send to the policy.
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
	_ = json.Unmarshal(members["uid"], &uid) // for logs; may be absent
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
