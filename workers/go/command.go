package worker

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// The command of a worker: flags, signals, and supervision by the parent process.
//
// Every flag is also an environment variable (ADMISSION_WORKER_LISTEN for --listen); the flag takes precedence. Exit
// codes: 0 stopped by a signal (SIGTERM, SIGINT), 1 cannot listen, 2 a flag or variable is invalid. A second signal
// ends the process at once, with 1.
//
// Under a gateway (ADMISSION_WORKER_SUPERVISED=1) the worker also stops when its standard input ends. The gateway
// holds the other end of that pipe and writes nothing, so that the end reports the death of the gateway, even by
// SIGKILL. An orphan would keep the socket.

const (
	exitStopped  = 0
	exitUnserved = 1
	exitMisused  = 2

	variablePrefix = "ADMISSION_WORKER_"

	// exportTimeout is the longest time that the last spans delay the exit: as for the gateway.
	exportTimeout = 5 * time.Second
)

// invocation holds the values of flags and variables.
type invocation struct {
	listen      string
	options     Options
	logFormat   string
	logLevel    string
	conformance bool
}

// Main is the command of a worker with these policies: it serves them until a signal stops it, and exits. If a policy
// is invalid (see [New]), it logs one line and exits with 1 before it serves.
func Main(name, version string, policies ...Registration) {
	os.Exit(command(name, version, policies, os.Args[1:], os.Stderr))
}

func command(name, version string, policies []Registration, arguments []string, stderr io.Writer) int {
	invoked, err := parsedInvocation(name, version, arguments, os.LookupEnv, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return exitStopped
	}
	if err != nil {
		fmt.Fprintf(stderr, "worker %s: %s\n", name, oneLine(err))
		return exitMisused
	}
	slog.SetDefault(slog.New(logFormats[invoked.logFormat](stderr, logLevels[invoked.logLevel])))
	if invoked.conformance {
		policies = slices.Concat(policies, probes())
	}
	// The reader of the log may end first. Without this, Go ends a process that writes to the broken standard error.
	signal.Ignore(syscall.SIGPIPE)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	made, err := New(name, version, policies...)
	if err != nil {
		slog.Error(oneLine(err))
		return exitUnserved
	}
	server, err := made.Serve(invoked.listen, invoked.options)
	if err != nil {
		slog.Error(oneLine(err))
		return exitUnserved
	}
	slog.Info(fmt.Sprintf("worker %s %s listens on %s; policies: %s", name, version, server.Address(), made.names()))
	return untilStopped(server, signals, os.Getenv(variablePrefix+"SUPERVISED") == "1")
}

// untilStopped waits for a signal, or the end of standard input, and stops the server.
func untilStopped(server *Server, signals <-chan os.Signal, supervised bool) int {
	orphaned := make(chan struct{})
	if supervised {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			close(orphaned)
		}()
	}
	select {
	case number := <-signals:
		slog.Info(signalName(number) + " received: open calls have " + server.service.limits.GracePeriod.String())
	case <-orphaned:
		slog.Info("standard input has ended: the parent process is gone; stopping")
	}
	stopped := make(chan struct{})
	go func() {
		server.Stop()
		exportSpans()
		close(stopped)
	}()
	select {
	case <-stopped:
		slog.Info("stopped")
		return exitStopped
	case number := <-signals:
		slog.Warn(signalName(number) + " again: ending at once")
		return exitUnserved
	}
}

func signalName(number os.Signal) string {
	if number == syscall.SIGTERM {
		return "SIGTERM"
	}
	return "SIGINT"
}

// parsedInvocation parses the flags, and takes the variables of flags that are absent.
func parsedInvocation(name, version string, arguments []string, variable func(string) (string, bool), help io.Writer) (invocation, error) {
	parsed := invocation{listen: "127.0.0.1:50051", logFormat: "text", logLevel: "info"}
	flags := parsed.flags(name)
	usage := flags.Usage
	flags.Usage = func() {}
	if err := flags.Parse(arguments); errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(help, "Serves worker %s %s.\nEach flag is also an environment variable: --in-flight is %sIN_FLIGHT.\n", name, version, variablePrefix)
		flags.SetOutput(help)
		usage()
		return parsed, err
	} else if err != nil {
		return parsed, err
	}
	if flags.NArg() > 0 {
		return parsed, fmt.Errorf("the command takes only flags, found the argument %q", flags.Arg(0))
	}
	given := map[string]bool{}
	flags.Visit(func(one *flag.Flag) { given[one.Name] = true })
	var wrong error
	flags.VisitAll(func(one *flag.Flag) {
		key := variablePrefix + strings.ToUpper(strings.ReplaceAll(one.Name, "-", "_"))
		if value, _ := variable(key); value != "" && !given[one.Name] && wrong == nil {
			if err := flags.Set(one.Name, value); err != nil {
				wrong = fmt.Errorf("invalid value %q for variable %s: %w", value, key, err)
			}
		}
	})
	if wrong != nil {
		return parsed, wrong
	}
	return parsed, parsed.options.TLS.validate()
}

func (i *invocation) flags(name string) *flag.FlagSet {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Usage = flags.PrintDefaults
	flags.Func("listen", "where to serve: `HOST:PORT`, unix:PATH or unix:///ABSOLUTE; a leading dns:/// is ignored "+
		"(default 127.0.0.1:50051)", i.setListen)
	flags.StringVar(&i.options.TLS.Cert, "tls-cert", "", "serve TLS with this certificate, a PEM `FILE`")
	flags.StringVar(&i.options.TLS.Key, "tls-key", "", "its private key, a PEM `FILE`")
	flags.StringVar(&i.options.TLS.ClientCA, "client-ca", "", "serve only clients with a certificate of these CAs, a PEM `FILE`")
	flags.Func("log-format", "`text` or json (default text)", oneOf(&i.logFormat, slices.Sorted(maps.Keys(logFormats))))
	flags.Func("log-level", "debug, `info`, warning or error (default info)", oneOf(&i.logLevel, slices.Sorted(maps.Keys(logLevels))))
	flags.Func("in-flight", fmt.Sprintf("the most policy calls at the same time, a `COUNT`; more are rejected (default %d)", DefaultInFlight),
		positive(&i.options.Limits.InFlight, math.MaxInt32))
	flags.Func("message-bytes", fmt.Sprintf("the largest gRPC message, a `COUNT`, received or sent (default %d)", DefaultMessageBytes),
		positive(&i.options.Limits.MessageBytes, largestMessage))
	flags.Func("grace-period", fmt.Sprintf("`SECONDS` for open calls after a signal to stop (default %g)", DefaultGracePeriod.Seconds()), i.setGracePeriod)
	flags.BoolVar(&i.conformance, "conformance", false, "also serve the probe policies of the conformance kit; not for production")
	return flags
}

func oneOf(target *string, allowed []string) func(string) error {
	return func(text string) error {
		if !slices.Contains(allowed, text) {
			return fmt.Errorf("must be one of %s", strings.Join(allowed, ", "))
		}
		*target = text
		return nil
	}
}

func positive(target *int, most int) func(string) error {
	return func(text string) error {
		number, err := strconv.Atoi(text)
		if err != nil || number < 1 || number > most {
			return fmt.Errorf("must be a whole number of 1 to %d", most)
		}
		*target = number
		return nil
	}
}

func (i *invocation) setListen(text string) error {
	i.listen = text
	_, err := parseAddress(text)
	return err
}

// longestGrace is a day, in seconds. A longer period is an error, and may exceed a Duration.
const longestGrace = 86400

func (i *invocation) setGracePeriod(text string) error {
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || !(seconds >= 0 && seconds <= longestGrace) {
		return fmt.Errorf("must be a number of seconds, 0 to %d", longestGrace)
	}
	i.options.Limits.GracePeriod = time.Duration(seconds * float64(time.Second))
	if i.options.Limits.GracePeriod == 0 {
		i.options.Limits.GracePeriod = -1 // "Negative: they are cancelled at once."
	}
	return nil
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
