package worker

import (
	"maps"
	"slices"
	"time"
)

// The answers of a policy: allowed, denied, or failed.
//
// An error is not a verdict. After Fail, or a returned error, the operator's failurePolicy decides about the request;
// it never overrides a denial. An invalid answer (an audit key with a space, a patch that cannot be encoded as JSON)
// is detected when the function returns it, and is a failure.

// Answer is the result of a policy function: [Allowed], [Denied] or [Failed]. nil means Allow().
type Answer interface{ isAnswer() }

// Allowed admits the request, with or without a change. Created by [Allow], [Patch], [Merge] and [Mutated].
type Allowed struct {
	// Change is the change of the object; nil: none. Mutating policies only.
	Change *Change
	// Warnings are shown by kubectl.
	Warnings []string
	// AuditAnnotations are for the API server's audit log.
	AuditAnnotations map[string]string
	// Cache shortens how long the verdict may be reused; nil: as the operator configured.
	Cache *CacheHint
}

// Denied rejects the request. Created by [Deny].
type Denied struct {
	// Message is for the user whose request is denied.
	Message string
	// Code is an HTTP status.
	Code int32
	// Reason is a metav1.StatusReason.
	Reason string
	// Causes are the single errors, for programs.
	Causes []Cause
	// Details identifies the resource of the denial.
	Details Details
	// Warnings, AuditAnnotations and Cache are as in Allowed.
	Warnings         []string
	AuditAnnotations map[string]string
	Cache            *CacheHint
}

// Failed reports that the policy has no verdict. Created by [Fail].
type Failed struct {
	// Message is for the operator.
	Message string
}

func (Allowed) isAnswer() {}
func (Denied) isAnswer()  {}
func (Failed) isAnswer()  {}

// Cause is one error: a metav1.StatusCause.
type Cause struct {
	// Field is in Kubernetes' notation, such as spec.containers[0].image.
	Field string
	// Message is for people.
	Message string
	// Reason is a metav1.CauseType such as FieldValueRequired; empty: FieldValueInvalid.
	Reason string
}

// Details is a metav1.StatusDetails without its causes.
type Details struct {
	Name, Group, Kind, UID string
	RetryAfterSeconds      int32
}

// CacheHint limits how long the gateway may reuse a verdict. It can only shorten the time that the operator
// configured.
type CacheHint struct {
	// NoStore forbids any reuse.
	NoStore bool
	// TTL is the longest time of reuse. Ignored with NoStore.
	TTL time.Duration
}

// Allow admits the request unchanged.
func Allow() Allowed { return Allowed{} }

// Deny rejects the request, with 403 Forbidden unless WithCode sets another code. The message is for the user: what
// is wrong and what to do. Report all errors in one denial, with one cause for each.
func Deny(message string) Denied { return Denied{Message: message}.WithCode(403) }

// Fail reports that the policy has no verdict. The message is for the operator: what failed, in one sentence. Under
// failurePolicy Fail the user sees it too.
func Fail(message string) Failed { return Failed{Message: message} }

// statusReasons are Kubernetes' reasons by code (k8s.io/apimachinery/pkg/apis/meta/v1/types.go).
var statusReasons = map[int32]string{
	400: "BadRequest",
	401: "Unauthorized",
	403: "Forbidden",
	404: "NotFound",
	405: "MethodNotAllowed",
	406: "NotAcceptable",
	409: "Conflict",
	410: "Gone",
	413: "RequestEntityTooLarge",
	415: "UnsupportedMediaType",
	422: "Invalid",
	429: "TooManyRequests",
	500: "InternalError",
	503: "ServiceUnavailable",
	504: "Timeout",
}

// WithCode returns the denial with another HTTP status, 400 to 599, and with Kubernetes' reason for it, if any. For
// other codes the gateway sends 400, as kube-apiserver does.
func (d Denied) WithCode(code int32) Denied {
	d.Code, d.Reason = code, statusReasons[code]
	return d
}

// WithReason returns the denial with a metav1.StatusReason in place of that of its code.
func (d Denied) WithReason(reason string) Denied {
	d.Reason = reason
	return d
}

// WithCauses returns the denial with these causes appended.
func (d Denied) WithCauses(causes ...Cause) Denied {
	d.Causes = slices.Concat(d.Causes, causes)
	return d
}

// WithDetails returns the denial with these details.
func (d Denied) WithDetails(details Details) Denied {
	d.Details = details
	return d
}

// WithWarnings returns the answer with these warnings appended. kubectl shows them. Keep each under 120 characters,
// without control characters.
func (a Allowed) WithWarnings(warnings ...string) Allowed {
	a.Warnings = slices.Concat(a.Warnings, warnings)
	return a
}

// WithWarnings is like that of [Allowed].
func (d Denied) WithWarnings(warnings ...string) Denied {
	d.Warnings = slices.Concat(d.Warnings, warnings)
	return d
}

// WithAuditAnnotation returns the answer with one more audit annotation. The key has 1 to 63 letters, digits, '-',
// '_', '.'. The value must be the same for the same document.
func (a Allowed) WithAuditAnnotation(key, value string) Allowed {
	a.AuditAnnotations = annotated(a.AuditAnnotations, key, value)
	return a
}

// WithAuditAnnotation is like that of [Allowed].
func (d Denied) WithAuditAnnotation(key, value string) Denied {
	d.AuditAnnotations = annotated(d.AuditAnnotations, key, value)
	return d
}

// WithTTL returns the answer with a limit for its reuse.
func (a Allowed) WithTTL(ttl time.Duration) Allowed {
	a.Cache = &CacheHint{TTL: ttl}
	return a
}

// WithTTL is like that of [Allowed].
func (d Denied) WithTTL(ttl time.Duration) Denied {
	d.Cache = &CacheHint{TTL: ttl}
	return d
}

// WithNoStore returns the answer with reuse forbidden.
func (a Allowed) WithNoStore() Allowed {
	a.Cache = &CacheHint{NoStore: true}
	return a
}

// WithNoStore is like that of [Allowed].
func (d Denied) WithNoStore() Denied {
	d.Cache = &CacheHint{NoStore: true}
	return d
}

// annotated copies the map: answers are values, and one that an author keeps in a variable must not change.
func annotated(annotations map[string]string, key, value string) map[string]string {
	made := maps.Clone(annotations)
	if made == nil {
		made = map[string]string{}
	}
	made[key] = value
	return made
}
