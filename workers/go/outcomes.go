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

// Answers as the contract's Outcomes. An answer that means nothing, or that its phase does not allow, is an
// InvalidAnswerError.

// auditKey is the contract's: "letters, digits, -, _, ., at most 63".
var auditKey = regexp.MustCompile(`\A[A-Za-z0-9._-]{1,63}\z`)

// longestCache is a hundred years: what is longer is a mistake.
const longestCache = 36500 * 24 * time.Hour

// outcomeOf is what a policy function returned, as the Outcome of a policy of this version called in this phase.
func outcomeOf(answer Answer, phase Phase, version string) (*workerv1.Outcome, error) {
	if err := acceptable(answer, phase); err != nil {
		return nil, err
	}
	switch said := answer.(type) {
	case Denied:
		outcome := accompanied(said.Warnings, said.AuditAnnotations, said.Cache, version)
		outcome.Verdict = &workerv1.Outcome_Deny{Deny: said.message()}
		return outcome, nil
	case Failed:
		return failure(said.Message, 0, version), nil
	default:
		allowed, _ := answer.(Allowed) // nil is Allow()
		outcome := accompanied(allowed.Warnings, allowed.AuditAnnotations, allowed.Cache, version)
		outcome.Verdict = &workerv1.Outcome_Allow{Allow: allowed.message()}
		return outcome, nil
	}
}

// failure is an Outcome that says that there is no verdict, in one sentence.
func failure(message string, reason workerv1.FailureReason, version string) *workerv1.Outcome {
	failed := &workerv1.Failure{Message: strings.ToValidUTF8(message, "\uFFFD"), Reason: reason}
	return &workerv1.Outcome{Verdict: &workerv1.Outcome_Failure{Failure: failed}, Version: version}
}

// acceptable says whether an answer means something in the phase.
func acceptable(answer Answer, phase Phase) error {
	switch said := answer.(type) {
	case nil:
		return nil
	case Allowed:
		if said.Change != nil && said.Change.wrong != "" {
			return &InvalidAnswerError{said.Change.wrong}
		}
		if said.Change != nil && phase == Validating {
			return &InvalidAnswerError{fmt.Sprintf("a change (%s): only a mutating policy may change the object", said.Change.Kind)}
		}
		return acceptableCompany(said.Warnings, said.AuditAnnotations, said.Cache)
	case Denied:
		texts := []string{said.Message, said.Reason, said.Details.Name, said.Details.Group, said.Details.Kind, said.Details.UID}
		for _, cause := range said.Causes {
			texts = append(texts, cause.Field, cause.Message, cause.Reason)
		}
		if err := acceptableTexts("a denial", texts...); err != nil {
			return err
		}
		return acceptableCompany(said.Warnings, said.AuditAnnotations, said.Cache)
	case Failed:
		return acceptableTexts("a failure", said.Message)
	default: // somebody embeds one of ours, or a pointer to one of them
		return &InvalidAnswerError{fmt.Sprintf("%T: must be Allowed, Denied, Failed or nil", answer)}
	}
}

func acceptableCompany(warnings []string, annotations map[string]string, cache *CacheHint) error {
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

// acceptableTexts are UTF-8: protobuf refuses to write others, and with them every outcome of the same message.
func acceptableTexts(what string, texts ...string) error {
	for _, text := range texts {
		if !utf8.ValidString(text) {
			return &InvalidAnswerError{what + ": holds a text that is not UTF-8"}
		}
	}
	return nil
}

// accompanied is an Outcome with all but its verdict.
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
	if d.Code != 0 { // a Denied that was made without Deny: "Unset: 403"
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

// valid are texts as protobuf can write them.
func valid(texts []string) []string {
	made := make([]string, len(texts))
	for index, text := range texts {
		made[index] = strings.ToValidUTF8(text, "\uFFFD")
	}
	return made
}
