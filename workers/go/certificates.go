package worker

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
)

// TLS from files, which are read again when they change.
//
// The files are looked at with each handshake: they are small, handshakes are few and cost more, and nothing runs
// in between. What is compared is their content, since a mounted Secret changes by a symbolic link, and two writes
// may share a time. What cannot be used is logged once, and what was used stays: a key that is written a moment
// after its certificate is no outage.

// TLS are the PEM files to serve with. The zero value is without TLS.
type TLS struct {
	// Cert is the certificate, with those of intermediate authorities behind it; Key its private key.
	Cert, Key string
	// ClientCA are authorities: only clients with a certificate of theirs are served. Empty: all clients.
	ClientCA string
}

// sound says what is missing.
func (t TLS) sound() error {
	switch {
	case (t.Cert == "") != (t.Key == ""):
		return errors.New("TLS needs both a certificate and its key (--tls-cert and --tls-key)")
	case t.ClientCA != "" && t.Cert == "":
		return errors.New("clients' certificates need TLS: with --client-ca go --tls-cert and --tls-key")
	default:
		return nil
	}
}

// certificates are the files as they were read last, and what is used of them.
type certificates struct {
	files TLS

	mu     sync.Mutex
	latest [][]byte // contents that were looked at last, usable or not
	used   *tls.Config
}

// newCertificates reads the files for the first time.
func newCertificates(files TLS) (*certificates, error) {
	made := &certificates{files: files}
	contents, err := made.read()
	if err != nil {
		return nil, err
	}
	made.latest = contents
	made.used, err = made.parsed(contents)
	return made, err
}

// config is what a server needs.
func (c *certificates) config() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.current(), nil },
	}
}

// current reads the files again, if they have changed.
func (c *certificates) current() *tls.Config {
	contents, err := c.read()
	c.mu.Lock()
	defer c.mu.Unlock()
	if equalContents(contents, c.latest) {
		return c.used
	}
	c.latest = contents
	var changed *tls.Config
	if err == nil {
		changed, err = c.parsed(contents)
	}
	if err != nil {
		slog.Error("the certificates have changed and cannot be used; those before stay: " + err.Error())
		return c.used
	}
	slog.Info("the certificates have changed and are used from now on")
	c.used = changed
	return c.used
}

// read gives the contents of the files.
func (c *certificates) read() ([][]byte, error) {
	var contents [][]byte
	for _, path := range []string{c.files.Cert, c.files.Key, c.files.ClientCA} {
		if path == "" {
			continue
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %s", path, reasonOf(err))
		}
		contents = append(contents, content)
	}
	return contents, nil
}

func (c *certificates) parsed(contents [][]byte) (*tls.Config, error) {
	pair, err := tls.X509KeyPair(contents[0], contents[1])
	if err != nil {
		return nil, fmt.Errorf("%s and %s: %w", c.files.Cert, c.files.Key, err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"}}
	if c.files.ClientCA != "" {
		config.ClientAuth = tls.RequireAndVerifyClientCert
		config.ClientCAs = x509.NewCertPool()
		if !config.ClientCAs.AppendCertsFromPEM(contents[2]) {
			return nil, fmt.Errorf("%s: holds no certificate in PEM", c.files.ClientCA)
		}
	}
	return config, nil
}

func equalContents(one, other [][]byte) bool {
	if len(one) != len(other) {
		return false
	}
	for index := range one {
		if !bytes.Equal(one[index], other[index]) {
			return false
		}
	}
	return true
}
