package worker

import (
	"maps"
	"slices"
	"time"
)

// What a policy answers: allowed, denied, or that it could not judge. There is no fourth.
//
// An error is not a verdict: Fail (or an error that is returned) says that there is none, and the operator's
// failurePolicy decides what becomes of the request; a denial stands whatever the failurePolicy. An answer that
// means nothing (an audit key with a space, a patch that cannot be written as JSON) is found when the function
// returns it, and is a failure.

// Answer is what a policy function returns: [Allowed], [Denied] or [Failed]; nil is Allow().
type Answer interface{ isAnswer() }

// Allowed lets the request pass, perhaps changed. Made by [Allow], [Patch], [Merge] and [Mutated].
type Allowed struct {
	// Change is what is to be changed; nil: nothing. Mutating policies only.
	Change *Change
	// Warnings are shown by kubectl.
	Warnings []string
	// AuditAnnotations are for the API server's audit log.
	AuditAnnotations map[string]string
	// Cache shortens how long the verdict may be reused; nil: as the operator configured.
	Cache *CacheHint
}

// Denied lets the request not pass. Made by [Deny].
type Denied struct {
	// Message is for the person who was denied.
	Message string
	// Code is an HTTP status.
	Code int32
	// Reason is a metav1.StatusReason.
	Reason string
	// Causes are what is wrong, one by one, for machines.
	Causes []Cause
	// Details says what the denial is about.
	Details Details
	// Warnings, AuditAnnotations and Cache are as in Allowed.
	Warnings         []string
	AuditAnnotations map[string]string
	Cache            *CacheHint
}

// Failed says that the policy could not judge. Made by [Fail].
type Failed struct {
	// Message is for the operator.
	Message string
}

func (Allowed) isAnswer() {}
func (Denied) isAnswer()  {}
func (Failed) isAnswer()  {}

// Cause is one thing that is wrong: a metav1.StatusCause.
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

// CacheHint says how long a verdict may be reused. It can only shorten what the operator configured.
type CacheHint struct {
	// NoStore: never.
	NoStore bool
	// TTL: at most so long. Not looked at with NoStore.
	TTL time.Duration
}

// Allow lets the request pass as it is.
func Allow() Allowed { return Allowed{} }

// Deny lets the request not pass: 403 Forbidden, if WithCode says nothing else. The message is for the person who
// was denied: what is wrong and what to do. Name everything that is wrong in one denial, with one cause for each
// thing.
func Deny(message string) Denied { return Denied{Message: message}.WithCode(403) }

// Fail says that the policy could not judge. The message is for the operator, what went wrong in one sentence; it
// reaches the user under failurePolicy Fail.
func Fail(message string) Failed { return Failed{Message: message} }

// statusReasons are Kubernetes' own pairs (k8s.io/apimachinery/pkg/apis/meta/v1/types.go).
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

// WithCode is the denial with another HTTP status, 400 to 599 (outside of that the gateway sends 400, as
// kube-apiserver does), and with the reason that Kubernetes pairs with it, if any.
func (d Denied) WithCode(code int32) Denied {
	d.Code, d.Reason = code, statusReasons[code]
	return d
}

// WithReason is the denial with another metav1.StatusReason than that of its code.
func (d Denied) WithReason(reason string) Denied {
	d.Reason = reason
	return d
}

// WithCauses is the denial with these causes besides those that it has.
func (d Denied) WithCauses(causes ...Cause) Denied {
	d.Causes = slices.Concat(d.Causes, causes)
	return d
}

// WithDetails is the denial with what it is about.
func (d Denied) WithDetails(details Details) Denied {
	d.Details = details
	return d
}

// WithWarnings is the answer with these warnings besides those that it has: shown by kubectl; each under 120
// characters, without control characters.
func (a Allowed) WithWarnings(warnings ...string) Allowed {
	a.Warnings = slices.Concat(a.Warnings, warnings)
	return a
}

// WithWarnings is as that of [Allowed].
func (d Denied) WithWarnings(warnings ...string) Denied {
	d.Warnings = slices.Concat(d.Warnings, warnings)
	return d
}

// WithAuditAnnotation is the answer with one more audit annotation. The key has 1 to 63 letters, digits, '-', '_',
// '.'; the value must be the same whenever the same document is called again.
func (a Allowed) WithAuditAnnotation(key, value string) Allowed {
	a.AuditAnnotations = annotated(a.AuditAnnotations, key, value)
	return a
}

// WithAuditAnnotation is as that of [Allowed].
func (d Denied) WithAuditAnnotation(key, value string) Denied {
	d.AuditAnnotations = annotated(d.AuditAnnotations, key, value)
	return d
}

// WithTTL is the answer that may be reused for at most so long.
func (a Allowed) WithTTL(ttl time.Duration) Allowed {
	a.Cache = &CacheHint{TTL: ttl}
	return a
}

// WithTTL is as that of [Allowed].
func (d Denied) WithTTL(ttl time.Duration) Denied {
	d.Cache = &CacheHint{TTL: ttl}
	return d
}

// WithNoStore is the answer that must never be reused.
func (a Allowed) WithNoStore() Allowed {
	a.Cache = &CacheHint{NoStore: true}
	return a
}

// WithNoStore is as that of [Allowed].
func (d Denied) WithNoStore() Denied {
	d.Cache = &CacheHint{NoStore: true}
	return d
}

// annotated is a copy: answers are values, and one that is kept in a variable must not change.
func annotated(annotations map[string]string, key, value string) map[string]string {
	made := maps.Clone(annotations)
	if made == nil {
		made = map[string]string{}
	}
	made[key] = value
	return made
}
