package worker

import "strings"

// Whose fault it was. Each of these becomes a failure or a settings error, never a crash and never a verdict.

// InvalidDocumentError is the gateway's fault, or that of an author who decodes into the wrong type: the document
// is not JSON, or a part of it is not what is expected there. Its message is safe to show: it holds positions and
// types, never values.
type InvalidDocumentError struct{ message string }

func (e *InvalidDocumentError) Error() string { return e.message }

// InvalidAnswerError is the policy author's fault: an answer that cannot mean anything, such as a patch without a
// path. Its message is safe to show: it holds names and types, never values.
type InvalidAnswerError struct{ message string }

func (e *InvalidAnswerError) Error() string { return e.message }

// SettingsError is one thing that is wrong with settings.
type SettingsError struct {
	// Pointer says where, as a JSON Pointer (RFC 6901) over the settings, such as /labels/team; empty: the settings
	// as a whole.
	Pointer string
	// Message says what is expected and what was found, in one sentence.
	Message string
}

func (e SettingsError) Error() string {
	if e.Pointer == "" {
		return e.Message
	}
	return e.Pointer + ": " + e.Message
}

// SettingsErrors is the operator's fault: all that is wrong with a policy's settings, never empty. An UnmarshalJSON
// of an author's own may return it, with pointers from its own value on.
type SettingsErrors []SettingsError

func (e SettingsErrors) Error() string {
	said := make([]string, len(e))
	for index, one := range e {
		said[index] = one.Error()
	}
	return strings.Join(said, "; ")
}

// Findings is what an author's check has to say about settings. It is used like a testing.T.
type Findings struct {
	errors   SettingsErrors
	warnings []string
}

// Error says what is wrong.
//
//   - pointer: where, as a JSON Pointer over the settings; [Pointer] makes one. Empty: the settings as a whole.
//   - message: what is expected and what was found, in one sentence.
func (f *Findings) Error(pointer, message string) {
	f.errors = append(f.errors, SettingsError{Pointer: pointer, Message: message})
}

// Warn says what the operator should know about settings that are accepted, such as a deprecated member.
func (f *Findings) Warn(message string) { f.warnings = append(f.warnings, message) }
