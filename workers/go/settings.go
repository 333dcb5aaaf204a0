package worker

import (
	"container/list"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"runtime/debug"
	"sync"

	kubejson "sigs.k8s.io/json"
)

// A policy's settings: JSON from the operator's configuration, converted and checked before anything is judged.
//
// Settings are one JSON object, never empty: no settings are {}. The same conversion runs in ValidateSettings (when
// the configuration is loaded) and before the first call; equal settings are equal bytes, so what was converted is
// kept by its bytes.

// NoSettings are the settings of a policy that has none: {} and nothing else.
type NoSettings struct{}

// settingsType is what a policy's settings must be.
type settingsType[S any] struct {
	loose bool
	check func(settings S, findings *Findings)
}

// read makes settings of their JSON text.
//
// It returns the settings and what the operator should be warned about, or all that is wrong with them.
func (t settingsType[S]) read(text []byte) (settings S, warnings []string, errors SettingsErrors) {
	if !json.Valid(text) || kindOf(text) != "an object" {
		found := kindOf(text)
		if found == "an object" {
			found = "no JSON"
		}
		return settings, nil, SettingsErrors{{"", "the settings must be one JSON object, found: " + found}}
	}
	defer func() {
		if thrown := recover(); thrown != nil {
			slog.Error("the check of settings panicked", "type", fmt.Sprintf("%T", settings), "panic", fmt.Sprint(thrown), "stack", string(debug.Stack()))
			errors = SettingsErrors{{"", fmt.Sprintf("the settings could not be checked: panic of type %T in the worker; see its log", thrown)}}
		}
	}()
	walked := walk{loose: t.loose}
	walked.value(text, reflect.TypeFor[S](), nil)
	if len(walked.errors) > 0 {
		return settings, nil, walked.errors
	}
	if err := kubejson.UnmarshalCaseSensitivePreserveInts(text, &settings); err != nil {
		return settings, nil, SettingsErrors{{"", "the settings cannot be read: " + err.Error()}}
	}
	findings := Findings{warnings: walked.warnings}
	if t.check != nil {
		t.check(settings, &findings)
	}
	return settings, findings.warnings, findings.errors
}

// keptSettings are those that were converted last, by policy and bytes, bounded in number and in the size of their
// text. What does not convert is not kept: it is not worth a place, and says so again each time.
type keptSettings struct {
	mu     sync.Mutex
	byText map[settingsKey]*list.Element
	latest *list.List // of *kept, the one that was used last in front
	bytes  int
}

type settingsKey struct{ policy, text string }

type kept struct {
	key     settingsKey
	once    sync.Once
	value   any
	wrong   SettingsErrors
	dropped bool
}

func newKeptSettings() *keptSettings {
	return &keptSettings{byText: map[settingsKey]*list.Element{}, latest: list.New()}
}

// read gives a policy's settings, converted only when they are not kept. Calls that come while they are converted
// wait for it.
func (k *keptSettings) read(called *policy, text []byte) (any, error) {
	entry := k.entry(settingsKey{called.name, string(text)})
	entry.once.Do(func() {
		entry.wrong = SettingsErrors{{"", "the settings could not be checked"}} // stands if the check ends its goroutine
		entry.value, _, entry.wrong = called.settings(text)
	})
	if len(entry.wrong) > 0 {
		k.drop(entry)
		return nil, entry.wrong
	}
	return entry.value, nil
}

func (k *keptSettings) entry(key settingsKey) *kept {
	k.mu.Lock()
	defer k.mu.Unlock()
	if found, is := k.byText[key]; is {
		k.latest.MoveToFront(found)
		return found.Value.(*kept)
	}
	made := &kept{key: key}
	k.byText[key] = k.latest.PushFront(made)
	k.bytes += len(key.text)
	for len(k.byText) > settingsKept || k.bytes > settingsKeptBytes {
		k.remove(k.latest.Back().Value.(*kept))
	}
	return made
}

func (k *keptSettings) drop(entry *kept) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.remove(entry)
}

func (k *keptSettings) remove(entry *kept) {
	if entry.dropped {
		return
	}
	entry.dropped = true
	k.latest.Remove(k.byText[entry.key])
	delete(k.byText, entry.key)
	k.bytes -= len(entry.key.text)
}
