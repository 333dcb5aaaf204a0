package worker

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"admission-gateway.dev/worker/workerv1"
)

// Encodes answers as the contract's Outcomes. An answer that is invalid, or not allowed in its phase, is an
// InvalidAnswerError.

// auditKey is the contract's: "letters, digits, -, _, ., at most 63".
var auditKey = regexp.MustCompile(`\A[A-Za-z0-9._-]{1,63}\z`)

// longestCache is a hundred years. A longer time is an error.
const longestCache = 36500 * 24 * time.Hour

// outcomeOf encodes the answer of a policy of this version, which was called in this phase.
func outcomeOf(answer Answer, phase Phase, version string) (*workerv1.Outcome, error) {
	if err := acceptable(answer, phase); err != nil {
		return nil, err
	}
	switch typed := answer.(type) {
	case Denied:
		outcome := accompanied(typed.Warnings, typed.AuditAnnotations, typed.Cache, version)
		outcome.Verdict = &workerv1.Outcome_Deny{Deny: typed.message()}
		return outcome, nil
	case Failed:
		return failure(typed.Message, 0, version), nil
	default:
		allowed, _ := answer.(Allowed) // nil is Allow()
		outcome := accompanied(allowed.Warnings, allowed.AuditAnnotations, allowed.Cache, version)
		outcome.Verdict = &workerv1.Outcome_Allow{Allow: allowed.message()}
		return outcome, nil
	}
}

// failure returns an Outcome without a verdict, and its reason in one sentence.
func failure(message string, reason workerv1.FailureReason, version string) *workerv1.Outcome {
	failed := &workerv1.Failure{Message: strings.ToValidUTF8(message, "\uFFFD"), Reason: reason}
	return &workerv1.Outcome{Verdict: &workerv1.Outcome_Failure{Failure: failed}, Version: version}
}

// acceptable validates an answer in its phase.
func acceptable(answer Answer, phase Phase) error {
	switch typed := answer.(type) {
	case nil:
		return nil
	case Allowed:
		if typed.Change != nil && typed.Change.wrong != "" {
			return &InvalidAnswerError{typed.Change.wrong}
		}
		if typed.Change != nil && phase == Validating {
			return &InvalidAnswerError{fmt.Sprintf("a change (%s): only a mutating policy may change the object", typed.Change.Kind)}
		}
		return acceptableMetadata(typed.Warnings, typed.AuditAnnotations, typed.Cache)
	case Denied:
		texts := []string{typed.Message, typed.Reason, typed.Details.Name, typed.Details.Group, typed.Details.Kind, typed.Details.UID}
		for _, cause := range typed.Causes {
			texts = append(texts, cause.Field, cause.Message, cause.Reason)
		}
		if err := acceptableTexts("a denial", texts...); err != nil {
			return err
		}
		return acceptableMetadata(typed.Warnings, typed.AuditAnnotations, typed.Cache)
	case Failed:
		return acceptableTexts("a failure", typed.Message)
	default: // a type that embeds one of ours, or a pointer to one
		return &InvalidAnswerError{fmt.Sprintf("%T: must be Allowed, Denied, Failed or nil", answer)}
	}
}

func acceptableMetadata(warnings []string, annotations map[string]string, cache *CacheHint) error {
	if err := acceptableTexts("the warnings", warnings...); err != nil {
		return err
	}
	for key, value := range annotations {
		if !auditKey.MatchString(key) {
			return &InvalidAnswerError{fmt.Sprintf("audit annotations: the key %q must be 1 to 63 letters, digits, '-', '_', '.'", key)}
		}
		if err := acceptableTexts("the audit annotation "+key, value); err != nil {
			return err
		}
	}
	if cache != nil && !cache.NoStore && (cache.TTL < 0 || cache.TTL > longestCache) {
		return &InvalidAnswerError{"cache: must be from 0 to 36500 days; NoStore is never"}
	}
	return nil
}

// acceptableTexts checks that texts are UTF-8. protobuf cannot encode others, and all outcomes of the same message
// would be lost.
func acceptableTexts(what string, texts ...string) error {
	for _, text := range texts {
		if !utf8.ValidString(text) {
			return &InvalidAnswerError{what + ": holds a text that is not UTF-8"}
		}
	}
	return nil
}

// accompanied returns an Outcome without its verdict.
func accompanied(warnings []string, annotations map[string]string, cache *CacheHint, version string) *workerv1.Outcome {
	outcome := &workerv1.Outcome{Warnings: warnings, AuditAnnotations: annotations, Version: version}
	switch {
	case cache == nil:
	case cache.NoStore:
		outcome.Cache = &workerv1.CacheHint{Hint: &workerv1.CacheHint_NoStore_{NoStore: &workerv1.CacheHint_NoStore{}}}
	default:
		outcome.Cache = &workerv1.CacheHint{Hint: &workerv1.CacheHint_Ttl{Ttl: durationpb.New(cache.TTL)}}
	}
	return outcome
}

func (a Allowed) message() *workerv1.Allow {
	if a.Change.changesNothing() {
		return &workerv1.Allow{}
	}
	switch a.Change.Kind {
	case JSONPatch:
		return &workerv1.Allow{Change: &workerv1.Allow_JsonPatch{JsonPatch: a.Change.JSON}}
	case MergePatch:
		return &workerv1.Allow{Change: &workerv1.Allow_MergePatch{MergePatch: a.Change.JSON}}
	default:
		return &workerv1.Allow{Change: &workerv1.Allow_Object{Object: a.Change.JSON}}
	}
}

func (d Denied) message() *workerv1.Deny {
	denied := &workerv1.Deny{Message: d.Message, Reason: d.Reason}
	if d.Code != 0 { // a Denied created without Deny: "Unset: 403"
		denied.Code = &d.Code
	}
	details := &workerv1.StatusDetails{
		Name:              d.Details.Name,
		Group:             d.Details.Group,
		Kind:              d.Details.Kind,
		Uid:               d.Details.UID,
		RetryAfterSeconds: d.Details.RetryAfterSeconds,
	}
	for _, cause := range d.Causes {
		if cause.Reason == "" {
			cause.Reason = "FieldValueInvalid"
		}
		details.Causes = append(details.Causes, &workerv1.StatusCause{Reason: cause.Reason, Message: cause.Message, Field: cause.Field})
	}
	if proto.Size(details) > 0 {
		denied.Details = details
	}
	return denied
}

// valid replaces what protobuf cannot encode.
func valid(texts []string) []string {
	made := make([]string, len(texts))
	for index, text := range texts {
		made[index] = strings.ToValidUTF8(text, "\uFFFD")
	}
	return made
}
