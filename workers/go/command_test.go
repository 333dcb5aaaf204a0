package worker_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"admission-gateway.dev/worker"
	"admission-gateway.dev/worker/workerv1"
)

// The command as a real process: with a variable set, this test binary is a worker.

const asWorker = "TESTED_AS_A_WORKER"

func TestMain(m *testing.M) {
	switch os.Getenv(asWorker) {
	case "sound":
		worker.Main("tested", "1", sound, echoes)
	case "unsound":
		worker.Main("tested", "", sound, sound)
	}
	os.Exit(m.Run())
}

// process is a started worker.
type process struct {
	*exec.Cmd
	t      *testing.T
	lines  *bufio.Scanner
	stdin  io.WriteCloser
	stderr io.ReadCloser
	exited bool
}

// started starts a worker with flags and variables (NAME=VALUE).
func started(t *testing.T, flags, variables []string) *process {
	t.Helper()
	made := &process{Cmd: exec.Command(os.Args[0], flags...), t: t}
	made.Env = append(append(os.Environ(), asWorker+"=sound"), variables...)
	stderr, err := made.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if made.stdin, err = made.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	made.stderr = stderr
	made.lines = bufio.NewScanner(stderr)
	if err := made.Start(); err != nil {
		t.Fatal(err)
	}
	lost := time.AfterFunc(testTimeout, func() { _ = made.Process.Kill() })
	t.Cleanup(func() {
		lost.Stop()
		if !made.exited {
			_ = made.Process.Kill()
			_ = made.Wait()
		}
	})
	return made
}

// line waits for the next line on standard error.
func (p *process) line() string {
	p.t.Helper()
	if !p.lines.Scan() {
		p.t.Fatal("there is no further line")
	}
	return p.lines.Text()
}

var listening = regexp.MustCompile(`worker tested 1 listens on (\S+); policies: (.*)$`)

// address waits for the line with the address, and returns it.
func (p *process) address() string {
	p.t.Helper()
	line := p.line()
	found := listening.FindStringSubmatch(line)
	if found == nil {
		p.t.Fatal(line)
	}
	return found[1]
}

// end waits for the process and returns its exit code and the rest of its log.
func (p *process) end() (code int, text []string) {
	p.t.Helper()
	for p.lines.Scan() {
		text = append(text, p.lines.Text())
	}
	var failed *exec.ExitError
	if err := p.Wait(); err != nil && !errors.As(err, &failed) {
		p.t.Fatal(err)
	}
	p.exited = true
	return p.ProcessState.ExitCode(), text
}

func TestTheCommandServesUntilASignal(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		process := started(t, []string{"--listen", "127.0.0.1:0"}, nil)
		connected := connect(t, process.address())
		if connected.review(t, call("sound", worker.Validating)).GetAllow() == nil {
			t.Error("it should serve")
		}
		if err := process.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if code, text := process.end(); code != 0 || !strings.HasSuffix(text[len(text)-1], "stopped") {
			t.Error(code, text)
		}
	}
}

func TestAFlagTakesPrecedenceOverItsVariable(t *testing.T) {
	socket := filepath.Join(shortFolder(t), "w.sock")
	process := started(t, []string{"--listen=unix:" + socket}, []string{"ADMISSION_WORKER_LISTEN=nonsense", "ADMISSION_WORKER_LOG_FORMAT=json", "ADMISSION_WORKER_CONFORMANCE=true"})
	var text map[string]any
	line := process.line()
	if err := json.Unmarshal([]byte(line), &text); err != nil {
		t.Fatal(line, err)
	}
	if _, err := time.Parse(time.RFC3339, text["time"].(string)); err != nil || text["level"] != "info" {
		t.Error(line)
	}
	found := listening.FindStringSubmatch(text["message"].(string))
	if found == nil || found[1] != "unix:"+socket || !strings.Contains(found[2], "probe-answer, probe-cancelled") {
		t.Error(line)
	}
	called := call("probe-panic", worker.Validating)
	failed := connect(t, found[1]).review(t, called).GetFailure().GetMessage()
	if !strings.HasPrefix(failed, "policy probe-panic panicked") {
		t.Error(failed)
	}
	line = process.line()
	if err := json.Unmarshal([]byte(line), &text); err != nil || text["uid"] != "uid-1" || text["policy"] != "probe-panic" || text["level"] != "error" {
		t.Error(line, err)
	}
}

func TestAnInvalidFlagIsOneLineAndExitCode2(t *testing.T) {
	invocations := map[string]struct{ flags, variables []string }{
		"an unknown flag":           {flags: []string{"--lisen", "x"}},
		"an argument":               {flags: []string{"serve"}},
		"an address that is none":   {flags: []string{"--listen", "nowhere"}},
		"a port that is none":       {flags: []string{"--listen", "127.0.0.1:65536"}},
		"a bare IPv6 address":       {flags: []string{"--listen", "::1:50051"}},
		"no calls in flight":        {flags: []string{"--in-flight", "0"}},
		"messages of no size":       {flags: []string{"--message-bytes", "x"}},
		"a negative grace period":   {flags: []string{"--grace-period", "-1"}},
		"a grace period of NaN":     {flags: []string{"--grace-period", "NaN"}},
		"a log format":              {flags: []string{"--log-format", "xml"}},
		"a log level":               {flags: []string{"--log-level", "loud"}},
		"a certificate alone":       {flags: []string{"--tls-cert", "a.pem"}},
		"authorities without TLS":   {flags: []string{"--client-ca", "a.pem"}},
		"a variable that is wrong":  {variables: []string{"ADMISSION_WORKER_IN_FLIGHT=many"}},
		"a variable with a bad log": {variables: []string{"ADMISSION_WORKER_LOG_LEVEL=loud"}},
	}
	for name, invocation := range invocations {
		if code, text := started(t, invocation.flags, invocation.variables).end(); code != 2 || len(text) != 1 {
			t.Errorf("%s: %d %q", name, code, text)
		}
	}
}

func TestAStartThatFailsIsOneLineAndExitCode1(t *testing.T) {
	folder := shortFolder(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	file := filepath.Join(folder, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct{ flags, variables []string }{
		"a port that is taken":      {flags: []string{"--listen", taken.Addr().String()}},
		"a file that is no socket":  {flags: []string{"--listen", "unix:" + file}},
		"a folder that is not":      {flags: []string{"--listen", "unix:" + folder + "/none/w.sock"}},
		"an unusable certificate":   {flags: []string{"--listen", "127.0.0.1:0", "--tls-cert", file, "--tls-key", file}},
		"an invalid registration":   {flags: []string{"--listen", "127.0.0.1:0"}, variables: []string{asWorker + "=unsound"}},
		"a certificate that is not": {flags: []string{"--listen", "127.0.0.1:0", "--tls-cert", "none", "--tls-key", "none"}},
	}
	for name, one := range cases {
		if code, text := started(t, one.flags, one.variables).end(); code != 1 || len(text) != 1 || !strings.Contains(text[0], " ERROR ") {
			t.Errorf("%s: %d %q", name, code, text)
		}
	}
}

func TestAStaleSocketIsReplacedAndOneInUseIsNot(t *testing.T) {
	socket := "unix:" + filepath.Join(shortFolder(t), "w.sock")
	first := started(t, []string{"--listen", socket}, nil)
	first.address()
	if code, text := started(t, []string{"--listen", socket}, nil).end(); code != 1 || !strings.Contains(text[0], "another process listens there") {
		t.Error(code, text)
	}
	_ = first.Process.Kill()
	first.end()
	if _, err := os.Lstat(strings.TrimPrefix(socket, "unix:")); err != nil {
		t.Fatal("a killed worker leaves its file behind:", err)
	}
	second := started(t, []string{"--listen", socket}, nil)
	if connect(t, second.address()).review(t, call("sound", worker.Validating)).GetAllow() == nil {
		t.Error("it should serve")
	}
}

func TestASupervisedWorkerStopsWhenItsStandardInputEnds(t *testing.T) {
	process := started(t, []string{"--listen", "127.0.0.1:0"}, []string{"ADMISSION_WORKER_SUPERVISED=1"})
	process.address()
	_ = process.stdin.Close()
	if code, text := process.end(); code != 0 || !strings.Contains(text[0], "standard input has ended") {
		t.Error(code, text)
	}
}

func TestABrokenStandardErrorDoesNotStopTheWorker(t *testing.T) {
	process := started(t, []string{"--listen", "127.0.0.1:0", "--conformance"}, nil)
	connected := connect(t, process.address())
	_ = process.stderr.Close()
	for range 3 { // each panic is logged
		if connected.review(t, call("probe-panic", worker.Validating)).GetFailure() == nil {
			t.Error("it should answer")
		}
	}
	_ = process.Process.Signal(syscall.SIGTERM)
	if code, _ := process.end(); code != 0 {
		t.Error(code)
	}
}

func TestASecondSignalEndsTheWorkerAtOnce(t *testing.T) {
	process := started(t, []string{"--listen", "127.0.0.1:0", "--grace-period", "600", "--conformance"}, nil)
	connected := connect(t, process.address())
	stream := connected.stream(t)
	called := call("probe-sleep", worker.Validating)
	called.Settings = []byte(`{"seconds":600,"token":"x"}`)
	stream.send(item(1, called), item(2, call("sound", worker.Validating)))
	if id, _ := stream.next(); id != 2 {
		t.Fatal(id)
	}
	_ = process.Process.Signal(syscall.SIGTERM)
	for {
		answer, err := connected.health.Check(within(t), &healthv1.HealthCheckRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if answer.GetStatus() == healthv1.HealthCheckResponse_NOT_SERVING {
			break
		}
	}
	_ = process.Process.Signal(syscall.SIGTERM)
	if code, text := process.end(); code != 1 || !strings.Contains(text[len(text)-1], "SIGTERM again: ending at once") {
		t.Error(code, text)
	}
}

func TestHelpExitsWith0(t *testing.T) {
	code, text := started(t, []string{"--help"}, nil).end()
	if text := strings.Join(text, "\n"); code != 0 || !strings.Contains(text, "-grace-period SECONDS") || !strings.Contains(text, "ADMISSION_WORKER_IN_FLIGHT") {
		t.Error(code, text)
	}
}

func TestDescribeOverAnyAddress(t *testing.T) {
	folder := shortFolder(t)
	for _, address := range []string{"unix:" + folder + "/a", "unix://" + folder + "/b", "dns:///127.0.0.1:0", "localhost:0"} {
		made, err := worker.New("tested", "1", sound)
		if err != nil {
			t.Fatal(err)
		}
		server, err := made.Serve(address, worker.Options{Limits: worker.Limits{GracePeriod: -1}})
		if err != nil {
			t.Fatal(address, err)
		}
		if _, err := connect(t, server.Address()).Describe(within(t), &workerv1.DescribeRequest{}); err != nil {
			t.Error(address, server.Address(), err)
		}
		server.Stop()
	}
	for _, address := range []string{"", "unix:", "unix://relative", "unix:" + strings.Repeat("x", 108), "127.0.0.1", ":1", "a/b:1", "127.0.0.1:x"} {
		made, _ := worker.New("tested", "1")
		var wrong *worker.AddressError
		if _, err := made.Serve(address, worker.Options{}); !errors.As(err, &wrong) || strings.Contains(err.Error(), "\n") {
			t.Error(address, err)
		}
	}
}

// shortFolder is a temporary one whose path leaves room for a socket's name.
func shortFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "w")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	return folder
}
