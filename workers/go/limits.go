package worker

import (
	"fmt"
	"sync/atomic"
	"time"
)

// The limits of a worker, each with the arithmetic that gave it. At a limit the worker rejects calls; it never
// stalls.

const mib = 1024 * 1024

const (
	// DefaultInFlight is the number of accepted calls that have not ended, over all connections: 16 gateways with 256
	// calls each. A call is a few KB besides its document, so 4,096 of them are some 20 MB.
	DefaultInFlight = 4096

	// DefaultMessageBytes: the gateway accepts bodies of 20 MB. A document is at most that body, and mutating
	// policies before this one may have let it grow; a whole object that goes back may be larger again. Twice the
	// body, and 1 MiB for settings and the rest of the message; the gateway's own limit is the same.
	DefaultMessageBytes = 2*20_000_000 + mib

	// DefaultGracePeriod is the time for open calls when the worker stops. A gateway that started the worker kills it
	// after 10 s, Kubernetes after 30 s by default; 2 s are left for the rest of the shutdown.
	DefaultGracePeriod = 8 * time.Second

	// batchBytes is gRPC's own default for what a receiver accepts. A batch of outcomes is at most this large, so
	// that a gateway without a limit of its own can read it. A larger outcome is sent alone.
	batchBytes = 4 * mib

	// settingsKept is the number of cached settings: one for each policy of a large configuration.
	settingsKept = 256

	// settingsKeptBytes is the size of the JSON text of all cached settings. A custom resource is at most 1.5 MB
	// (etcd's limit), so ten of the largest fit.
	settingsKeptBytes = 16 * mib

	// envelopeBytes is what a message needs beside one outcome: an id of up to 10 bytes, and tags and lengths of up
	// to 6 bytes each.
	envelopeBytes = 64

	// largestMessage is the largest length in gRPC's 32-bit prefix that fits an int32.
	largestMessage = 1<<31 - 1
)

// Limits of one served worker. The zero value of each is its default.
type Limits struct {
	// InFlight is the number of accepted calls that have not ended. The worker rejects more (RESOURCE_EXHAUSTED, on
	// the stream a failure).
	InFlight int
	// MessageBytes is the largest gRPC message, received or sent.
	MessageBytes int
	// GracePeriod is the time for open calls when the worker stops. Negative: they are cancelled at once.
	GracePeriod time.Duration
}

// completed fills in the defaults. It returns an error if a limit is invalid.
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

// inFlight counts the accepted calls that have not ended.
type inFlight struct {
	limit int64
	count atomic.Int64
}

// enter accepts one call. False: the limit is reached.
func (f *inFlight) enter() bool {
	if f.count.Add(1) > f.limit {
		f.count.Add(-1)
		return false
	}
	return true
}

// leave ends one call.
func (f *inFlight) leave() { f.count.Add(-1) }

// refusal is the message to the rejected client: who, limit, next step.
func (f *inFlight) refusal() string {
	return fmt.Sprintf("the worker has its limit of %d calls in flight: run more replicas, "+
		"or raise --in-flight (ADMISSION_WORKER_IN_FLIGHT)", f.limit)
}
