package worker

import (
	"fmt"
	"sync/atomic"
	"time"
)

// How much a worker takes on. Full means a decided refusal, never a stall. Every number has the arithmetic that
// gave it.

const mib = 1024 * 1024

const (
	// DefaultInFlight are calls taken and not yet worked off, over all connections: 16 gateways with 256 calls each.
	// A call is a few KB besides its document, so 4,096 of them are some 20 MB.
	DefaultInFlight = 4096

	// DefaultMessageBytes: the gateway accepts bodies of 20 MB. A document is at most that body, and mutating
	// policies before this one may have let it grow; a whole object that goes back may be larger again. Twice the
	// body, and 1 MiB for settings and what stands around; the gateway's own limit is the same.
	DefaultMessageBytes = 2*20_000_000 + mib

	// DefaultGracePeriod is for open calls when the worker is told to stop. A gateway that started it kills it
	// after 10 s, Kubernetes after 30 s by default; 2 are left for the rest of the shutdown.
	DefaultGracePeriod = 8 * time.Second

	// batchBytes is gRPC's own default for what a receiver accepts. Outcomes are gathered up to here, so that a
	// gateway which has set no limit can read every batch; a single outcome that is larger travels alone.
	batchBytes = 4 * mib

	// settingsKept are converted settings that are kept: one for each policy of a large configuration.
	settingsKept = 256

	// settingsKeptBytes is the JSON text of all settings that are kept together. A custom resource is at most 1.5
	// MB (etcd's limit), so ten of the largest fit.
	settingsKeptBytes = 16 * mib

	// envelopeBytes is what a message needs beside one outcome: an id of up to 10 bytes, and tags and lengths of up
	// to 6 bytes each.
	envelopeBytes = 64

	// largestMessage is what gRPC's length of 32 bits can say, as far as an int32 holds it.
	largestMessage = 1<<31 - 1
)

// Limits of one served worker. The zero value of each is its default.
type Limits struct {
	// InFlight are calls taken and not yet worked off; more are refused (RESOURCE_EXHAUSTED, on the stream a failure).
	InFlight int
	// MessageBytes is the largest gRPC message, received or sent.
	MessageBytes int
	// GracePeriod is for open calls when the worker stops. Negative: they are cancelled at once.
	GracePeriod time.Duration
}

// completed puts the defaults where nothing is said. It returns an error for a limit that is none.
func (l Limits) completed() (Limits, error) {
	if l.InFlight < 0 {
		return l, fmt.Errorf("limit InFlight: must be at least 1, is %d", l.InFlight)
	}
	if l.MessageBytes < 0 || l.MessageBytes > largestMessage {
		return l, fmt.Errorf("limit MessageBytes: must be 1 to %d, is %d", largestMessage, l.MessageBytes)
	}
	if l.InFlight == 0 {
		l.InFlight = DefaultInFlight
	}
	if l.MessageBytes == 0 {
		l.MessageBytes = DefaultMessageBytes
	}
	if l.GracePeriod == 0 {
		l.GracePeriod = DefaultGracePeriod
	}
	l.GracePeriod = max(0, l.GracePeriod)
	return l, nil
}

// inFlight counts the calls that are being worked on, and says whether one more may be taken.
type inFlight struct {
	limit int64
	count atomic.Int64
}

// enter takes one call. False: there is no room, and nothing was taken.
func (f *inFlight) enter() bool {
	if f.count.Add(1) > f.limit {
		f.count.Add(-1)
		return false
	}
	return true
}

// leave says that one call is worked off.
func (f *inFlight) leave() { f.count.Add(-1) }

// refusal is the sentence for whoever is refused: who, limit, next step.
func (f *inFlight) refusal() string {
	return fmt.Sprintf("the worker has its limit of %d calls in flight: run more replicas, "+
		"or raise --in-flight (ADMISSION_WORKER_IN_FLIGHT)", f.limit)
}
