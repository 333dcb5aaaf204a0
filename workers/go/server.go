package worker

import (
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"

	"admission-gateway.dev/worker/workerv1"
)

// A worker on its address, and an orderly end: a lame duck first (NOT_SERVING, and whatever still comes is
// answered), then no more calls, then whatever is open for what is left of the grace period, then nothing.

// pingPeriod is how often a gateway may ping, with and without open calls: every 5 s, less a second for timers that
// are early. gRPC's default of five minutes would cut off one that watches over its workers (GOAWAY
// "too_many_pings").
const pingPeriod = 4 * time.Second

// A gateway that says nothing for quietAfter is pinged, and let go of when it does not answer within pongPatience: one
// whose machine has died would else keep its connection, its streams and what it had asked for hours.
const (
	quietAfter   = 60 * time.Second
	pongPatience = 20 * time.Second
)

// look is how often a worker that is told to stop looks whether its streams have ended.
const look = 20 * time.Millisecond

// Options of a served worker. The zero value has the default limits, and no TLS.
type Options struct {
	Limits Limits
	TLS    TLS
}

// Server is a worker that is served.
type Server struct {
	address  address
	service  *service
	grpc     *grpc.Server
	accepted *connections
	stopping chan struct{}
	ended    chan struct{}
	once     sync.Once
}

// Serve serves the worker until Stop, in the background.
//
//   - where: HOST:PORT (port 0: any), [IPv6]:PORT, unix:PATH or unix:///ABSOLUTE.
//
// The error is an [AddressError], or names a limit that is none or a certificate that cannot be used.
func (w *Worker) Serve(where string, options Options) (*Server, error) {
	limits, err := options.Limits.completed()
	if err != nil {
		return nil, err
	}
	listened, err := parseAddress(where)
	if err != nil {
		return nil, err
	}
	settings := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(limits.MessageBytes),
		grpc.MaxSendMsgSize(limits.MessageBytes),
		grpc.ConnectionTimeout(handshakePatience),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: quietAfter, Timeout: pongPatience}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingPeriod, PermitWithoutStream: true}),
	}
	if err := options.TLS.sound(); err != nil {
		return nil, err
	}
	if options.TLS.Cert != "" {
		files, err := newCertificates(options.TLS)
		if err != nil {
			return nil, err
		}
		settings = append(settings, grpc.Creds(credentials.NewTLS(files.config())))
	}
	listener, found, err := listened.listen()
	if err != nil {
		return nil, err
	}
	made := &Server{
		address:  found,
		grpc:     grpc.NewServer(settings...),
		accepted: newConnections(listener),
		stopping: make(chan struct{}),
		ended:    make(chan struct{}),
	}
	made.service = newService(w, limits, made.stopping)
	workerv1.RegisterWorkerServer(made.grpc, made.service)
	healthv1.RegisterHealthServer(made.grpc, &health{stopping: made.stopping})
	go func() {
		defer close(made.ended)
		if err := made.grpc.Serve(made.accepted); err != nil {
			slog.Error("the server has ended: " + err.Error())
		}
	}()
	return made, nil
}

// Address is where a gRPC client finds the worker, with the port that was found where 0 was asked for.
func (s *Server) Address() string { return s.address.String() }

// Stop stops the worker gracefully, and returns when it has stopped: after the grace period at the latest.
func (s *Server) Stop() {
	s.once.Do(func() {
		close(s.stopping)
		over := time.After(s.service.limits.GracePeriod)
		// Half of the grace period is for those who do not hear: then a GOAWAY tells them, without a loss.
		s.awaitQuiet(time.After(s.service.limits.GracePeriod / 2))
		stopped := make(chan struct{})
		go func() {
			s.grpc.GracefulStop()
			close(stopped)
		}()
		select {
		case <-stopped:
		case <-over:
			s.accepted.closeAll()
			s.grpc.Stop()
			<-stopped
		}
		<-s.ended
	})
}

// awaitQuiet returns when no stream is open and no Review has come for a while. Streams see to their end themselves.
func (s *Server) awaitQuiet(over <-chan time.Time) {
	told := time.Now()
	for {
		latest := time.Unix(0, s.service.arrival.Load())
		if latest.Before(told) {
			latest = told
		}
		left := quietPeriod - time.Since(latest)
		if left <= 0 {
			if s.service.streams.Load() == 0 {
				return
			}
			left = look
		}
		select {
		case <-time.After(left):
		case <-over:
			return
		}
	}
}
