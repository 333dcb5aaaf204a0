// Load sends reviews at given rates, whether or not the answers keep up: an open loop.
//
// With -mode keep, -connections connections are kept, one review at a time on each, as kube-apiserver's pool does; an
// arrival for which no connection is free is counted as unsent. With -mode new, each review has a connection of its own,
// and the certificate's chain is not verified: it is the gateway's work that is measured. A review that has no answer when its timeout ends is given up, and its connection closed.
//
// A phase with the rate 0 is a closed loop: each kept connection sends its next review when it has its answer.
//
// The standard output is JSON: for each phase what became of its arrivals, by slices of 100 ms, and their latencies.
package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	slice       = 100 * time.Millisecond
	outstanding = 20_000 // reviews on connections of their own at once: descriptors
)

type outcome int

const (
	judged     outcome = iota // an allow
	overloaded                // an answer that says OVERLOADED
	failed                    // another answer, or a broken connection
	late                      // no answer within the timeout
	unsent                    // no connection was free
	outcomes
)

// Phase is what became of the arrivals of one phase. Judged counts those that were judged before it ended, and
// Milliseconds are their latencies: what is judged when the load has fallen is no service under load.
type Phase struct {
	Rate         float64            `json:"rate"`
	Seconds      float64            `json:"seconds"`
	Slices       [][outcomes]int    `json:"slices"`
	Judged       int                `json:"judged"`
	Milliseconds map[string]float64 `json:"milliseconds"`
	Refused      map[string]float64 `json:"refusedMilliseconds"`
	Why          map[string]int     `json:"why"`

	begin     time.Time
	lock      sync.Mutex
	latencies [2][]float64
}

func (p *Phase) record(arrived time.Time, took time.Duration, what outcome, why error) {
	p.lock.Lock()
	defer p.lock.Unlock()
	at := min(int(arrived.Sub(p.begin)/slice), len(p.Slices)-1)
	p.Slices[at][what]++
	if within := time.Since(p.begin).Seconds() <= p.Seconds; within && (what == judged || what == overloaded) {
		if what == judged {
			p.Judged++
		}
		p.latencies[what] = append(p.latencies[what], float64(took.Microseconds())/1000)
	}
	if why != nil {
		text := why.Error()
		p.Why[text[strings.LastIndex(text, ":")+1:]]++
	}
}

func quantiles(latencies []float64) map[string]float64 {
	found := map[string]float64{}
	if len(latencies) > 0 {
		sort.Float64s(latencies)
		for name, share := range map[string]float64{"p50": 0.5, "p99": 0.99, "max": 1} {
			found[name] = latencies[int(share*float64(len(latencies)-1))]
		}
	}
	return found
}

type arrival struct {
	phase *Phase
	at    time.Time
}

type client struct {
	address string
	config  *tls.Config
	message []byte
	timeout time.Duration
}

func (c *client) dial(deadline time.Time) (*tls.Conn, *bufio.Reader, error) {
	dialer := net.Dialer{Deadline: deadline}
	plain, err := dialer.Dial("tcp", c.address)
	if err != nil {
		return nil, nil, err
	}
	connection := tls.Client(plain, c.config)
	connection.SetDeadline(deadline)
	if err := connection.Handshake(); err != nil {
		plain.Close()
		return nil, nil, err
	}
	return connection, bufio.NewReader(connection), nil
}

// review sends one review and reads its answer.
func (c *client) review(connection *tls.Conn, reader *bufio.Reader, deadline time.Time) (outcome, bool, error) {
	connection.SetDeadline(deadline)
	if _, err := connection.Write(c.message); err != nil {
		return classified(err), false, err
	}
	length, closes := 0, false
	for first := true; ; first = false {
		line, err := reader.ReadString('\n')
		if err != nil {
			return classified(err), false, err
		}
		field := strings.ToLower(strings.TrimSpace(line))
		if value, found := strings.CutPrefix(field, "content-length:"); found {
			length, _ = strconv.Atoi(strings.TrimSpace(value))
		} else if field == "connection: close" {
			closes = true
		} else if field == "" && !first {
			break
		}
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(reader, body); err != nil {
		return classified(err), false, err
	}
	switch {
	case bytes.Contains(body, []byte("OVERLOADED")):
		return overloaded, !closes, nil
	case bytes.Contains(body, []byte(`"allowed":true`)):
		return judged, !closes, nil
	}
	return failed, !closes, fmt.Errorf("%.60s", body)
}

func classified(err error) outcome {
	if timeout, is := err.(net.Error); is && timeout.Timeout() {
		return late
	}
	return failed
}

// keep serves arrivals on one kept connection, and dials again when it has ended.
func (c *client) keep(arrivals <-chan arrival, dialled *sync.WaitGroup, idle *atomic.Int64) {
	connection, reader, err := c.dial(time.Now().Add(10 * time.Second))
	dialled.Done()
	for next := range arrivals {
		// In a closed loop the phase itself is the next arrival.
		again := next.phase.Rate == 0
		for ; again; again = time.Since(next.phase.begin).Seconds() < next.phase.Seconds {
			connection, reader, err = c.exchange(connection, reader, err, arrival{next.phase, time.Now()})
		}
		if next.phase.Rate != 0 {
			connection, reader, err = c.exchange(connection, reader, err, next)
		}
		idle.Add(1)
	}
}

// exchange sends one review on a connection, or on a new one if it has ended. It returns the connection for the next.
func (c *client) exchange(
	connection *tls.Conn, reader *bufio.Reader, err error, next arrival,
) (*tls.Conn, *bufio.Reader, error) {
	deadline := next.at.Add(c.timeout)
	if err != nil || connection == nil {
		connection, reader, err = c.dial(deadline)
	}
	if err != nil {
		next.phase.record(next.at, 0, classified(err), err)
		return nil, nil, err
	}
	what, kept, why := c.review(connection, reader, deadline)
	next.phase.record(next.at, time.Since(next.at), what, why)
	if !kept {
		connection.NetConn().Close()
		connection = nil
	}
	return connection, reader, nil
}

// once sends one review on a connection of its own.
func (c *client) once(next arrival) {
	deadline := next.at.Add(c.timeout)
	connection, reader, err := c.dial(deadline)
	if err != nil {
		next.phase.record(next.at, 0, classified(err), err)
		return
	}
	what, _, why := c.review(connection, reader, deadline)
	next.phase.record(next.at, time.Since(next.at), what, why)
	connection.NetConn().Close()
}

func main() {
	address := flag.String("address", "", "the gateway's host and port")
	authority := flag.String("ca", "", "file with the CA of its certificate")
	path := flag.String("path", "/validate?timeout=10s", "path and query")
	body := flag.String("body", "", "file with the AdmissionReview")
	mode := flag.String("mode", "keep", "keep: kept connections; new: one for each review")
	connections := flag.Int("connections", 100, "kept connections")
	timeout := flag.Duration("timeout", 10*time.Second, "when an answer is given up")
	schedule := flag.String("phases", "100:1", "RATE:SECONDS, separated by commas")
	flag.Parse()
	review, err := os.ReadFile(*body)
	check(err)
	pem, err := os.ReadFile(*authority)
	check(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	head := "POST " + *path + " HTTP/1.1\r\nHost: gateway.svc:443\r\nUser-Agent: kube-apiserver-admission\r\nContent-Length: " +
		strconv.Itoa(len(review)) + "\r\nAccept: application/json, */*\r\nContent-Type: application/json\r\nAccept-Encoding: gzip\r\n\r\n"
	c := &client{
		address: *address, timeout: *timeout, message: append([]byte(head), review...),
		config: &tls.Config{RootCAs: roots, ServerName: "localhost", InsecureSkipVerify: *mode == "new", CurvePreferences: []tls.CurveID{tls.X25519}},
	}
	arrivals := make(chan arrival, *connections)
	var idle atomic.Int64
	if *mode == "keep" {
		idle.Store(int64(*connections))
		var dialled sync.WaitGroup
		dialled.Add(*connections)
		for range *connections {
			go c.keep(arrivals, &dialled, &idle)
		}
		dialled.Wait()
	}
	var pending sync.WaitGroup
	var open atomic.Int64
	send := func(next arrival) bool {
		if *mode == "keep" {
			if idle.Add(-1) < 0 {
				idle.Add(1)
				return false
			}
			arrivals <- next
			return true
		}
		if open.Load() >= outstanding {
			return false
		}
		open.Add(1)
		pending.Add(1)
		go func() {
			defer pending.Done()
			defer open.Add(-1)
			c.once(next)
		}()
		return true
	}
	phases := []*Phase{}
	for _, text := range strings.Split(*schedule, ",") {
		rate, seconds, _ := strings.Cut(text, ":")
		phase := &Phase{begin: time.Now(), Why: map[string]int{}}
		phase.Rate, _ = strconv.ParseFloat(rate, 64)
		phase.Seconds, _ = strconv.ParseFloat(seconds, 64)
		phase.Slices = make([][outcomes]int, int(phase.Seconds*10)+1)
		phases = append(phases, phase)
		run(phase, *connections, send)
	}
	// What is still open ends by its timeout.
	ended := make(chan struct{})
	go func() { pending.Wait(); close(ended) }()
	select {
	case <-ended:
		if *mode == "keep" {
			time.Sleep(min(*timeout, 2*time.Second))
		}
	case <-time.After(*timeout + time.Second):
	}
	for _, phase := range phases {
		phase.lock.Lock()
		phase.Milliseconds, phase.Refused = quantiles(phase.latencies[judged]), quantiles(phase.latencies[overloaded])
	}
	check(json.NewEncoder(os.Stdout).Encode(phases))
}

// run makes the arrivals of one phase: evenly spread, and none is delayed by the answers.
func run(phase *Phase, connections int, send func(arrival) bool) {
	if phase.Rate == 0 {
		for range connections {
			send(arrival{phase: phase})
		}
		time.Sleep(time.Duration(phase.Seconds * float64(time.Second)))
		return
	}
	ticks := time.NewTicker(time.Millisecond)
	defer ticks.Stop()
	for made := 0; ; <-ticks.C {
		since := time.Since(phase.begin)
		if since.Seconds() >= phase.Seconds {
			return
		}
		due := int(phase.Rate*since.Seconds()) - made
		made += due
		now := time.Now()
		for ; due > 0 && send(arrival{phase: phase, at: now}); due-- {
		}
		phase.lock.Lock()
		phase.Slices[min(int(since/slice), len(phase.Slices)-1)][unsent] += due
		phase.lock.Unlock()
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
