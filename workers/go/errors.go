package worker

import "strings"

// Error types. Each becomes a failure or a settings error, never a crash and never a verdict.

// InvalidDocumentError reports a document that is not JSON, or whose part does not decode into the given type: an
// error of the gateway, or of the author who chose the type. Its message has positions and types, never values.
type InvalidDocumentError struct{ message string }

func (e *InvalidDocumentError) Error() string { return e.message }

// InvalidAnswerError reports an invalid answer of a policy, such as a patch without a path: an error of the author.
// Its message has names and types, never values.
type InvalidAnswerError struct{ message string }

func (e *InvalidAnswerError) Error() string { return e.message }

// SettingsError is one error in settings.
type SettingsError struct {
	// Pointer is the JSON Pointer (RFC 6901) of the value in the settings, such as /labels/team; empty: the whole
	// settings.
	Pointer string
	// Message states what is expected and what was found, in one sentence.
	Message string
}

func (e SettingsError) Error() string {
	if e.Pointer == "" {
		return e.Message
	}
	return e.Pointer + ": " + e.Message
}

// SettingsErrors are all errors in a policy's settings, never empty: errors of the operator. An author's
// UnmarshalJSON may return it, with pointers relative to its value.
type SettingsErrors []SettingsError

func (e SettingsErrors) Error() string {
	texts := make([]string, len(e))
	for index, one := range e {
		texts[index] = one.Error()
	}
	return strings.Join(texts, "; ")
}

// Findings collects the errors and warnings of a check. Its methods are like those of testing.T.
type Findings struct {
	errors   SettingsErrors
	warnings []string
}

// Error adds an error.
//
//   - pointer: the JSON Pointer of the value in the settings; see [Pointer]. Empty: the whole settings.
//   - message: what is expected and what was found, in one sentence.
func (f *Findings) Error(pointer, message string) {
	f.errors = append(f.errors, SettingsError{Pointer: pointer, Message: message})
}

// Warn adds a warning about settings that are accepted, such as a deprecated member.
func (f *Findings) Warn(message string) { f.warnings = append(f.warnings, message) }
