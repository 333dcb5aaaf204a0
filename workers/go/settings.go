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

// Converts and caches a policy's settings: JSON from the operator's configuration.
//
// Settings are one JSON object; no settings are {}. The same conversion runs in ValidateSettings (when the
// configuration is loaded) and before the first call. Equal settings have equal bytes, so the cache key is the text.

// NoSettings are the settings of a policy without settings: only {} is valid.
type NoSettings struct{}

// settingsType converts and checks settings of type S.
type settingsType[S any] struct {
	loose bool
	check func(settings S, findings *Findings)
}

// read converts the JSON text of settings.
//
// It returns the settings and warnings, or all errors.
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

// settingsCache caches converted settings by policy and text. It removes the least recently used, and is limited in
// number and in the size of texts. Invalid settings are not cached.
type settingsCache struct {
	mu     sync.Mutex
	byText map[settingsKey]*list.Element
	latest *list.List // of *cachedSettings, the most recently used in front
	bytes  int
}

type settingsKey struct{ policy, text string }

type cachedSettings struct {
	key     settingsKey
	once    sync.Once
	value   any
	wrong   SettingsErrors
	dropped bool
}

func newSettingsCache() *settingsCache {
	return &settingsCache{byText: map[settingsKey]*list.Element{}, latest: list.New()}
}

// read returns a policy's settings, and converts them if they are not cached. Concurrent calls wait for the same
// conversion.
func (c *settingsCache) read(policy *policy, text []byte) (any, error) {
	entry := c.entry(settingsKey{policy.name, string(text)})
	entry.once.Do(func() {
		entry.wrong = SettingsErrors{{"", "the settings could not be checked"}} // stays if the check ends its goroutine
		entry.value, _, entry.wrong = policy.settings(text)
	})
	if len(entry.wrong) > 0 {
		c.drop(entry)
		return nil, entry.wrong
	}
	return entry.value, nil
}

func (c *settingsCache) entry(key settingsKey) *cachedSettings {
	c.mu.Lock()
	defer c.mu.Unlock()
	if found, is := c.byText[key]; is {
		c.latest.MoveToFront(found)
		return found.Value.(*cachedSettings)
	}
	made := &cachedSettings{key: key}
	c.byText[key] = c.latest.PushFront(made)
	c.bytes += len(key.text)
	for len(c.byText) > settingsKept || c.bytes > settingsKeptBytes {
		c.remove(c.latest.Back().Value.(*cachedSettings))
	}
	return made
}

func (c *settingsCache) drop(entry *cachedSettings) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(entry)
}

func (c *settingsCache) remove(entry *cachedSettings) {
	if entry.dropped {
		return
	}
	entry.dropped = true
	c.latest.Remove(c.byText[entry.key])
	delete(c.byText, entry.key)
	c.bytes -= len(entry.key.text)
}
