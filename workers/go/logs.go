package worker

import (
	"context"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The log of a worker: one line for each event on standard error, as text or JSON. The SDK logs to slog's default
// logger, so that a worker inside a program writes to the program's log. It logs uids, never documents.

// logFormats are the values of --log-format.
var logFormats = map[string]func(to io.Writer, level slog.Level) slog.Handler{
	"text": func(to io.Writer, level slog.Level) slog.Handler {
		return &textHandler{to: to, level: level, lock: &sync.Mutex{}}
	},
	"json": func(to io.Writer, level slog.Level) slog.Handler {
		return slog.NewJSONHandler(to, &slog.HandlerOptions{Level: level, ReplaceAttr: renamed})
	},
}

// logLevels are the values of --log-level.
var logLevels = map[string]slog.Level{
	"debug": slog.LevelDebug, "info": slog.LevelInfo, "warning": slog.LevelWarn, "error": slog.LevelError,
}

// renamed gives slog's attributes the names and values of the workers' logs in every language.
func renamed(groups []string, attribute slog.Attr) slog.Attr {
	if len(groups) > 0 {
		return attribute
	}
	switch attribute.Key {
	case slog.MessageKey:
		attribute.Key = "message"
	case slog.LevelKey:
		if level, is := attribute.Value.Any().(slog.Level); is {
			attribute.Value = slog.StringValue(levelName(level))
		}
	}
	return attribute
}

func levelName(level slog.Level) string {
	switch {
	case level < slog.LevelInfo:
		return "debug"
	case level < slog.LevelWarn:
		return "info"
	case level < slog.LevelError:
		return "warning"
	default:
		return "error"
	}
}

// textHandler writes TIME LEVEL MESSAGE, followed by attributes as name=value. slog's TextHandler would quote the
// message.
type textHandler struct {
	to     io.Writer
	level  slog.Level
	prefix string // of names, in a group
	after  string // attributes of With
	lock   *sync.Mutex
}

func (h *textHandler) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level }

func (h *textHandler) Handle(_ context.Context, record slog.Record) error {
	var line strings.Builder
	line.WriteString(record.Time.UTC().Format("2006-01-02T15:04:05.000Z"))
	line.WriteString(" " + strings.ToUpper(levelName(record.Level)) + " ")
	line.WriteString(strings.NewReplacer("\n", " ", "\r", " ").Replace(record.Message))
	line.WriteString(h.after)
	record.Attrs(func(attribute slog.Attr) bool {
		line.WriteString(h.attribute(attribute))
		return true
	})
	line.WriteByte('\n')
	h.lock.Lock()
	defer h.lock.Unlock()
	_, err := io.WriteString(h.to, line.String())
	return err
}

func (h *textHandler) attribute(attribute slog.Attr) string {
	value := attribute.Value.Resolve()
	text := value.String()
	if value.Kind() == slog.KindTime {
		text = value.Time().Format(time.RFC3339Nano)
	}
	if quoted := strconv.Quote(text); text == "" || len(quoted) != len(text)+2 || strings.ContainsAny(text, " =") {
		text = quoted
	}
	return " " + h.prefix + attribute.Key + "=" + text
}

func (h *textHandler) WithAttrs(attributes []slog.Attr) slog.Handler {
	made := *h
	for _, attribute := range attributes {
		made.after += h.attribute(attribute)
	}
	return &made
}

func (h *textHandler) WithGroup(name string) slog.Handler {
	made := *h
	if name != "" {
		made.prefix += name + "."
	}
	return &made
}
