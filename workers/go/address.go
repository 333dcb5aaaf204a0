package worker

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Parses and opens the address on which a worker listens.
//
// A killed worker leaves the file of its Unix socket behind. Such a stale file is removed; the socket of a process
// that still listens is not. Therefore listen first connects to the socket.

// AddressError reports an invalid address, or one on which the worker cannot listen. Its message is one line.
type AddressError struct{ message string }

func (e *AddressError) Error() string { return e.message }

const (
	// sunPathBytes is the longest path of a Unix socket on Linux: sun_path has 108 bytes, the last of which is NUL
	// (unix(7)).
	sunPathBytes = 107

	// socketProbeTimeout limits the connection to an existing socket. The kernel accepts for a listening process in
	// microseconds.
	socketProbeTimeout = time.Second
)

// address is the path of a Unix socket, or a host and a port (0: any free port).
type address struct {
	path string
	host string
	port uint16
}

// String returns the address in gRPC's form: unix:PATH or HOST:PORT.
func (a address) String() string {
	if a.path != "" {
		return "unix:" + a.path
	}
	return net.JoinHostPort(a.host, strconv.Itoa(int(a.port)))
}

// parseAddress parses unix:PATH, unix:///ABSOLUTE, HOST:PORT or [IPv6]:PORT. It ignores a leading dns:///, so that
// the target of a gRPC client is a valid address.
func parseAddress(text string) (address, error) {
	if path, is := strings.CutPrefix(text, "unix:"); is {
		return parseUnix(text, path)
	}
	host, port, err := net.SplitHostPort(strings.TrimPrefix(text, "dns:///"))
	if err != nil && strings.Contains(err.Error(), "too many colons") {
		return address{}, &AddressError{fmt.Sprintf("%q: an IPv6 address is written in brackets, as in [::1]:50051", text)}
	}
	number, noPort := strconv.ParseUint(port, 10, 16)
	if err != nil || noPort != nil || host == "" || strings.Contains(host, "/") {
		return address{}, &AddressError{fmt.Sprintf("%q: must be HOST:PORT, [IPv6]:PORT or unix:PATH, such as 127.0.0.1:50051", text)}
	}
	return address{host: host, port: uint16(number)}, nil
}

func parseUnix(text, path string) (address, error) {
	if below, is := strings.CutPrefix(path, "//"); is {
		path = below
		if !strings.HasPrefix(path, "/") {
			return address{}, &AddressError{fmt.Sprintf("%q: unix:// must be followed by an absolute path, as in unix:///run/worker.sock", text)}
		}
	}
	if len(path) == 0 || len(path) > sunPathBytes {
		return address{}, &AddressError{fmt.Sprintf("%q: the path of a Unix socket has 1 to %d bytes, this one has %d", text, sunPathBytes, len(path))}
	}
	return address{path: path}, nil
}

// listen opens the address. It also returns the address with the actual port.
func (a address) listen() (net.Listener, address, error) {
	if a.path != "" {
		return a.listenUnix()
	}
	listener, err := net.Listen("tcp", a.String())
	if err != nil {
		return nil, a, a.cannot(reasonOf(err))
	}
	if found, is := listener.Addr().(*net.TCPAddr); is {
		a.port = uint16(found.Port)
	}
	return listener, a, nil
}

func (a address) listenUnix() (net.Listener, address, error) {
	if err := a.removeStale(); err != nil {
		return nil, a, err
	}
	listener, err := net.Listen("unix", a.path)
	if err != nil {
		return nil, a, a.cannot(reasonOf(err))
	}
	return listener, a, nil
}

// removeStale removes the file of a socket on which no process listens.
func (a address) removeStale() error {
	found, err := os.Lstat(a.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if parent, err := os.Stat(filepath.Dir(a.path)); err != nil || !parent.IsDir() {
			return a.cannot(filepath.Dir(a.path) + " is no directory")
		}
		return nil
	case err != nil:
		return a.cannot(reasonOf(err))
	case found.Mode().Type() != fs.ModeSocket:
		return a.cannot("the file is no socket; remove it or choose another path")
	case a.isInUse():
		return a.cannot("another process listens there; stop it or choose another path")
	}
	if err := os.Remove(a.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return a.cannot("its old file cannot be removed: " + reasonOf(err))
	}
	return nil
}

// isInUse reports whether a process listens on the socket. One that is too busy to accept, or denies access, counts.
func (a address) isInUse() bool {
	connection, err := net.DialTimeout("unix", a.path, socketProbeTimeout)
	if err != nil {
		return !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, fs.ErrNotExist)
	}
	_ = connection.Close()
	return true
}

func (a address) cannot(reason string) error {
	return &AddressError{fmt.Sprintf("cannot listen on %s: %s", a, reason)}
}

// reasonOf returns the message of the operating system's error, without Go's context.
func reasonOf(err error) string {
	var number syscall.Errno
	if errors.As(err, &number) {
		return number.Error()
	}
	var lookup *net.DNSError
	if errors.As(err, &lookup) {
		return lookup.Error()
	}
	return err.Error()
}
