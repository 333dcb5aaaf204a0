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

// Where a worker listens, and whether it can: an address that is taken is said at once, in one line.
//
// A worker that was killed leaves the file of its Unix socket behind, so a file that nobody listens on is taken
// over. One that somebody listens on is not; therefore a socket is tried first.

// AddressError is the operator's fault: the address cannot be listened on. Its message is one line.
type AddressError struct{ message string }

func (e *AddressError) Error() string { return e.message }

const (
	// sunPathBytes is the longest path of a Unix socket on Linux: sun_path has 108 bytes, the last of which is NUL
	// (unix(7)).
	sunPathBytes = 107

	// probePatience is how long somebody on the socket has to take a connection; a kernel answers for a process in
	// microseconds.
	probePatience = time.Second
)

// address is a Unix socket's path, or a host and a port (0: any that is free).
type address struct {
	path string
	host string
	port uint16
}

// String is as gRPC writes it: unix:PATH or HOST:PORT.
func (a address) String() string {
	if a.path != "" {
		return "unix:" + a.path
	}
	return net.JoinHostPort(a.host, strconv.Itoa(int(a.port)))
}

// parseAddress reads an address as operators write it: unix:PATH, unix:///ABSOLUTE, HOST:PORT or [IPv6]:PORT; a
// leading dns:///, which gRPC clients need, is taken off, so that a client's target can be given as it is.
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

// listen opens the address. It also returns it with the port that was found.
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
	if err := a.takeOver(); err != nil {
		return nil, a, err
	}
	listener, err := net.Listen("unix", a.path)
	if err != nil {
		return nil, a, a.cannot(reasonOf(err))
	}
	return listener, a, nil
}

// takeOver removes the file of a socket that nobody listens on.
func (a address) takeOver() error {
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
	case a.isAnswered():
		return a.cannot("another process listens there; stop it or choose another path")
	}
	if err := os.Remove(a.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return a.cannot("its old file cannot be removed: " + reasonOf(err))
	}
	return nil
}

// isAnswered says whether somebody listens. Whoever is too busy to answer, or forbids it, is somebody.
func (a address) isAnswered() bool {
	connection, err := net.DialTimeout("unix", a.path, probePatience)
	if err != nil {
		return !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, fs.ErrNotExist)
	}
	_ = connection.Close()
	return true
}

func (a address) cannot(reason string) error {
	return &AddressError{fmt.Sprintf("cannot listen on %s: %s", a, reason)}
}

// reasonOf an error of the operating system, in its own words only.
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
