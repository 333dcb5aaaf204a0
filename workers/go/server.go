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

// Serves a worker, and stops it gracefully: first the worker is a lame duck (health reports NOT_SERVING; new calls
// are still answered), then it accepts no more calls, and open calls have the rest of the grace period.

// minPingInterval is the shortest interval of a client's keepalive pings: a gateway pings every 5 s, less 1 s for
// early timers. With gRPC's default of five minutes the server would disconnect it (GOAWAY "too_many_pings").
const minPingInterval = 4 * time.Second

// The server pings a client that was silent for keepaliveTime, and disconnects it after keepaliveTimeout without a
// reply. Otherwise a gateway whose machine has died would keep its connection, streams and calls for hours.
const (
	keepaliveTime    = 60 * time.Second
	keepaliveTimeout = 20 * time.Second
)

// stopPollInterval is how often a stopping worker checks whether its streams have ended.
const stopPollInterval = 20 * time.Millisecond

// Options of a served worker. The zero value has the default limits, and no TLS.
type Options struct {
	Limits Limits
	TLS    TLS
}

// Server serves a worker.
type Server struct {
	address  address
	service  *service
	grpc     *grpc.Server
	accepted *connections
	stopping chan struct{}
	ended    chan struct{}
	once     sync.Once
}

// Serve starts to serve the worker in the background, until Stop.
//
//   - where: HOST:PORT (port 0: any free port), [IPv6]:PORT, unix:PATH or unix:///ABSOLUTE.
//
// The error is an [AddressError], or reports an invalid limit or certificate.
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
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: keepaliveTime, Timeout: keepaliveTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPingInterval, PermitWithoutStream: true}),
	}
	if err := options.TLS.validate(); err != nil {
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
			slog.Error("the gRPC server failed: " + err.Error())
		}
	}()
	return made, nil
}

// Address returns the address for gRPC clients, with the actual port.
func (s *Server) Address() string { return s.address.String() }

// Stop stops the worker gracefully. It returns when the worker has stopped, at the latest after the grace period.
func (s *Server) Stop() {
	s.once.Do(func() {
		close(s.stopping)
		over := time.After(s.service.limits.GracePeriod)
		// A client that does not watch the health gets a GOAWAY after half of the grace period, without a lost call.
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

// awaitQuiet returns when no stream is open and no Review has arrived for quietPeriod. Streams end themselves.
func (s *Server) awaitQuiet(over <-chan time.Time) {
	began := time.Now()
	for {
		latest := time.Unix(0, s.service.arrival.Load())
		if latest.Before(began) {
			latest = began
		}
		left := quietPeriod - time.Since(latest)
		if left <= 0 {
			if s.service.streams.Load() == 0 {
				return
			}
			left = stopPollInterval
		}
		select {
		case <-time.After(left):
		case <-over:
			return
		}
	}
}
