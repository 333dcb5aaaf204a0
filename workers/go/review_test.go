package worker_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"admission-gateway.dev/worker"
	"admission-gateway.dev/worker/workerv1"
)

const secret = "a secret that must not travel"

func TestPanicsAndErrorsAreFailuresWithoutTheirText(t *testing.T) {
	cases := map[string]struct {
		judge func(ctx context.Context, request *worker.Request) (worker.Answer, error)
		text  string
	}{
		"panics":       {func(context.Context, *worker.Request) (worker.Answer, error) { panic(secret) }, "panicked with a value of type string; see the worker's log"},
		"dereferences": {func(context.Context, *worker.Request) (worker.Answer, error) { return *(*worker.Answer)(nil), nil }, "panicked with a value of type runtime.errorString; see the worker's log"},
		"panics-nil":   {func(context.Context, *worker.Request) (worker.Answer, error) { panic(nil) }, "panicked with a value of type *runtime.PanicNilError; see the worker's log"},
		"exits":        {func(context.Context, *worker.Request) (worker.Answer, error) { runtime.Goexit(); return nil, nil }, "ended its goroutine without an answer (runtime.Goexit)"},
		"errs":         {func(context.Context, *worker.Request) (worker.Answer, error) { return nil, errors.New(secret) }, "returned an error of type *errors.errorString; see the worker's log"},
		"misreads": {func(_ context.Context, request *worker.Request) (worker.Answer, error) {
			var object struct{ Metadata string }
			_, err := request.Object(&object)
			return nil, fmt.Errorf(secret+": %w", err)
		}, "returned *worker.InvalidDocumentError: the document's object cannot be read: the value at byte"},
	}
	var policies []worker.Registration
	for name, one := range cases {
		policies = append(policies, deciding(name, worker.Validating, one.judge))
	}
	connected := served(t, worker.Options{}, policies...)
	stream := connected.stream(t)
	for name, one := range cases {
		called := callAbout(name, worker.Validating, `{"object":{"Metadata":{}}}`)
		stream.send(item(7, called))
		_, streamed := stream.next()
		for _, outcome := range []*workerv1.Outcome{connected.review(t, called), streamed} {
			text := outcome.GetFailure().GetMessage()
			if !strings.HasPrefix(text, "policy "+name+" "+one.text) || strings.Contains(text, secret) || outcome.GetVersion() != "1" {
				t.Errorf("%s: %v", name, outcome)
			}
		}
	}
}

// logged captures the log until the test ends: JSON, one event a line.
func logged(t *testing.T) *lockedBuffer {
	lines := &lockedBuffer{}
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewJSONHandler(lines, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return lines
}

// lockedBuffer is written by the server and read by the test.
type lockedBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *lockedBuffer) Write(content []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(content)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func TestEachFailureIsLoggedWithItsUID(t *testing.T) {
	lines := logged(t)
	ways := map[string]func(context.Context, *worker.Request) (worker.Answer, error){
		"says-so": func(context.Context, *worker.Request) (worker.Answer, error) { return worker.Fail("no database"), nil },
		"errs":    func(context.Context, *worker.Request) (worker.Answer, error) { return nil, errors.New("no database") },
		"panics":  func(context.Context, *worker.Request) (worker.Answer, error) { panic("no database") },
	}
	var policies []worker.Registration
	for name, judge := range ways {
		policies = append(policies, deciding(name, worker.Validating, judge))
	}
	connected := served(t, worker.Options{}, policies...)
	for name := range ways {
		called := call(name, worker.Validating)
		called.Uid = "uid-of-" + name
		connected.review(t, called)
		found := slices.ContainsFunc(strings.Split(lines.String(), "\n"), func(line string) bool {
			return strings.Contains(line, `"uid":"uid-of-`+name+`","policy":"`+name+`"`) && strings.Contains(line, "no database")
		})
		if !found {
			t.Errorf("%s: not in the log: %s", name, lines)
		}
	}
}

func TestAnInvalidCallIsAFailureWithItsReason(t *testing.T) {
	connected := served(t, worker.Options{}, sound)
	without := call("sound", worker.Validating)
	without.DocumentSource = nil
	indexed := call("sound", worker.Validating)
	indexed.DocumentSource = &workerv1.PolicyCall_DocumentIndex{}
	cases := map[string]struct {
		call   *workerv1.PolicyCall
		reason workerv1.FailureReason
	}{
		`worker tested holds no policy "other"; it holds: sound`:                         {call("other", worker.Validating), workerv1.FailureReason_FAILURE_REASON_UNKNOWN_POLICY},
		`worker tested holds no policy ""; it holds: sound`:                              {nil, workerv1.FailureReason_FAILURE_REASON_UNKNOWN_POLICY},
		`policy sound is for the validating phase and was called in the mutating phase`:  {call("sound", worker.Mutating), workerv1.FailureReason_FAILURE_REASON_UNKNOWN_POLICY},
		`policy sound is for the validating phase and was called in no phase (0)`:        {call("sound", 0), workerv1.FailureReason_FAILURE_REASON_UNKNOWN_POLICY},
		`policy sound was called without a document`:                                     {without, 0},
		`policy sound: the document is not one JSON object: it is empty`:                 {callAbout("sound", worker.Validating, ""), 0},
		`policy sound: the document is not one JSON object: it is an array`:              {callAbout("sound", worker.Validating, "[]"), 0},
		`policy sound: the document is not one JSON object: it is no UTF-8`:              {callAbout("sound", worker.Validating, "{\"a\":\"\xff\"}"), 0},
		`policy sound: the document cannot be read: no JSON at byte 14`:                  {callAbout("sound", worker.Validating, `{"operation":a}`), 0},
		`policy sound: the document cannot be read: the value at byte 14 is not of type`: {callAbout("sound", worker.Validating, `{"operation":1}`), 0},
	}
	for text, one := range cases {
		failed := connected.review(t, one.call).GetFailure()
		if !strings.HasPrefix(failed.GetMessage(), text) || failed.GetReason() != one.reason {
			t.Errorf("wanted %s\nfound  %v", text, failed)
		}
	}
	if text := connected.review(t, indexed).GetFailure().GetMessage(); !strings.Contains(text, "without a document") {
		t.Error(text)
	}
}

// waiting returns a policy that waits for the end of its context, and channels for its begin and its end.
func waiting() (worker.Registration, <-chan struct{}, <-chan error) {
	begun, ended := make(chan struct{}, 10_000), make(chan error, 10_000)
	return deciding("waits", worker.Validating, func(ctx context.Context, _ *worker.Request) (worker.Answer, error) {
		begun <- struct{}{}
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, ctx.Err()
	}), begun, ended
}

func TestTheDeadlineOfAReviewCancelsItsPolicy(t *testing.T) {
	policy, begun, ended := waiting()
	connected := served(t, worker.Options{}, policy)
	for given := 50 * time.Millisecond; len(begun) == 0; given *= 2 { // the deadline may be over before the policy begins
		ctx, cancel := context.WithTimeout(t.Context(), given)
		_, err := connected.Review(ctx, &workerv1.ReviewRequest{Call: call("waits", worker.Validating)})
		cancel()
		if status.Code(err) != codes.DeadlineExceeded {
			t.Fatal(err)
		}
	}
	await(t, ended, "the policy's end")
}

func TestACancelledCallCancelsItsPolicy(t *testing.T) {
	policy, begun, ended := waiting()
	connected := served(t, worker.Options{}, policy)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-begun
		cancel()
	}()
	_, err := connected.Review(ctx, &workerv1.ReviewRequest{Call: call("waits", worker.Validating)})
	if status.Code(err) != codes.Canceled {
		t.Error(err)
	}
	if why := await(t, ended, "the policy's end"); !errors.Is(why, context.Canceled) {
		t.Error(why)
	}
}

func TestAPolicyThatIgnoresItsDeadlineDelaysNoCall(t *testing.T) {
	release := make(chan struct{})
	deaf := deciding("deaf", worker.Validating, func(context.Context, *worker.Request) (worker.Answer, error) {
		<-release
		return nil, nil
	})
	connected := served(t, worker.Options{}, deaf)
	t.Cleanup(func() { close(release) })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := connected.Review(ctx, &workerv1.ReviewRequest{Call: call("deaf", worker.Validating)}); status.Code(err) != codes.DeadlineExceeded {
		t.Error(err)
	}
}

func TestCallsAboveInFlightAreRejected(t *testing.T) {
	policy, begun, _ := waiting()
	connected := served(t, worker.Options{Limits: worker.Limits{InFlight: 1}}, policy, sound)
	stream := connected.stream(t)
	stream.send(item(1, call("waits", worker.Validating)))
	await(t, begun, "the first call")
	_, err := connected.Review(within(t), &workerv1.ReviewRequest{Call: call("sound", worker.Validating)})
	if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "its limit of 1 calls in flight") {
		t.Error(err)
	}
	stream.send(item(2, call("sound", worker.Validating)))
	if id, outcome := stream.next(); id != 2 || !strings.Contains(outcome.GetFailure().GetMessage(), "calls in flight") {
		t.Error(id, outcome)
	}
	stream.send(cancelOf(1)) // the call is in flight until its function has ended
	for {
		answer, err := connected.Review(within(t), &workerv1.ReviewRequest{Call: call("sound", worker.Validating)})
		if status.Code(err) == codes.ResourceExhausted {
			continue
		}
		if answer.GetOutcome().GetAllow() == nil {
			t.Error(answer, err)
		}
		return
	}
}

func TestAMessageAboveTheLimitIsRejected(t *testing.T) {
	connected := served(t, worker.Options{Limits: worker.Limits{MessageBytes: 1000}}, sound)
	large := callAbout("sound", worker.Validating, `{"name":"`+strings.Repeat("x", 1000)+`"}`)
	if _, err := connected.Review(within(t), &workerv1.ReviewRequest{Call: large}); status.Code(err) != codes.ResourceExhausted {
		t.Error(err)
	}
	if connected.review(t, call("sound", worker.Validating)).GetAllow() == nil {
		t.Error("the worker should go on")
	}
}

func TestAnInvalidLimitIsAnError(t *testing.T) {
	made, _ := worker.New("w", "1", sound)
	for _, limits := range []worker.Limits{{InFlight: -1}, {MessageBytes: -1}, {MessageBytes: 1 << 31}} {
		if _, err := made.Serve("127.0.0.1:0", worker.Options{Limits: limits}); err == nil || !strings.Contains(err.Error(), "must be") {
			t.Error(limits, err)
		}
	}
}
