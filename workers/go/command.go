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

// The worker's command: flags, signals, and the end with whoever started it.
//
// Every flag is an environment variable too (ADMISSION_WORKER_LISTEN for --listen); a flag goes before its
// variable. The command ends with exit code 0 when it is told to stop (SIGTERM, SIGINT) and has stopped, 1 when it
// cannot listen, 2 when a flag or a variable is wrong. A second signal ends it at once, with 1.
//
// Started by a gateway (ADMISSION_WORKER_SUPERVISED=1), it also stops when its standard input ends: the gateway
// holds the other end and writes nothing, so the end says that the gateway has died, even by SIGKILL. Without that
// an orphan would keep the socket.

const (
	exitStopped  = 0
	exitUnserved = 1
	exitMisused  = 2

	variablePrefix = "ADMISSION_WORKER_"
)

// invocation is what the flags and variables say.
type invocation struct {
	listen      string
	options     Options
	logFormat   string
	logLevel    string
	conformance bool
}

// Main is the command of a worker with these policies: it serves them until it is told to stop, and exits. A
// mistake in a policy (see [New]) is said in one line, with exit code 1, before anything is served.
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
	// Whoever reads the log may end first; Go would end a process that writes to its standard error then.
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
		slog.Info("standard input has ended, and with it whoever started this worker: stopping")
	}
	stopped := make(chan struct{})
	go func() {
		server.Stop()
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

// parsedInvocation reads flags, and variables for those that are not given.
func parsedInvocation(name, version string, arguments []string, variable func(string) (string, bool), help io.Writer) (invocation, error) {
	said := invocation{listen: "127.0.0.1:50051", logFormat: "text", logLevel: "info"}
	flags := said.flags(name)
	usage := flags.Usage
	flags.Usage = func() {}
	if err := flags.Parse(arguments); errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(help, "Serves worker %s %s.\nEach flag is an environment variable too: --in-flight is %sIN_FLIGHT.\n", name, version, variablePrefix)
		flags.SetOutput(help)
		usage()
		return said, err
	} else if err != nil {
		return said, err
	}
	if flags.NArg() > 0 {
		return said, fmt.Errorf("there are no arguments but flags, found %q", flags.Arg(0))
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
		return said, wrong
	}
	return said, said.options.TLS.sound()
}

func (i *invocation) flags(name string) *flag.FlagSet {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Usage = flags.PrintDefaults
	flags.Func("listen", "where to serve: `HOST:PORT`, unix:PATH or unix:///ABSOLUTE; a leading dns:/// is taken off "+
		"(default 127.0.0.1:50051)", i.setListen)
	flags.StringVar(&i.options.TLS.Cert, "tls-cert", "", "serve TLS with this certificate, a PEM `FILE`")
	flags.StringVar(&i.options.TLS.Key, "tls-key", "", "its private key, a PEM `FILE`")
	flags.StringVar(&i.options.TLS.ClientCA, "client-ca", "", "serve only clients with a certificate of these authorities, a PEM `FILE`")
	flags.Func("log-format", "`text` or json (default text)", oneOf(&i.logFormat, slices.Sorted(maps.Keys(logFormats))))
	flags.Func("log-level", "debug, `info`, warning or error (default info)", oneOf(&i.logLevel, slices.Sorted(maps.Keys(logLevels))))
	flags.Func("in-flight", fmt.Sprintf("calls worked on at the same time, a `COUNT`; more are refused (default %d)", DefaultInFlight),
		positive(&i.options.Limits.InFlight, math.MaxInt32))
	flags.Func("message-bytes", fmt.Sprintf("the largest gRPC message, a `COUNT`, received or sent (default %d)", DefaultMessageBytes),
		positive(&i.options.Limits.MessageBytes, largestMessage))
	flags.Func("grace-period", fmt.Sprintf("`SECONDS` for open calls when told to stop (default %g)", DefaultGracePeriod.Seconds()), i.setGracePeriod)
	flags.BoolVar(&i.conformance, "conformance", false, "serve the probe policies of the conformance kit, too: not in production")
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

// longestGrace is a day: what is longer is a mistake, and might not fit a Duration.
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
