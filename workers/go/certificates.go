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

// TLS certificates from files, which are reloaded when they change.
//
// Each handshake reads the files: they are small, handshakes are few and cost more, and no timer is needed. Their
// contents are compared, since a mounted Secret changes by a symbolic link, and two writes may share a modification
// time. Files that cannot be used are logged once, and the previous ones stay in use: a key that is written a moment
// after its certificate causes no outage.

// TLS are the PEM files of a server. The zero value serves without TLS.
type TLS struct {
	// Cert is the certificate, followed by those of intermediate CAs. Key is its private key.
	Cert, Key string
	// ClientCA are the CAs of clients: only clients with a certificate of these are served. Empty: all clients.
	ClientCA string
}

// validate reports a missing file.
func (t TLS) validate() error {
	switch {
	case (t.Cert == "") != (t.Key == ""):
		return errors.New("TLS needs both a certificate and its key (--tls-cert and --tls-key)")
	case t.ClientCA != "" && t.Cert == "":
		return errors.New("--client-ca needs --tls-cert and --tls-key")
	default:
		return nil
	}
}

// certificates are the latest contents of the files, and the configuration in use.
type certificates struct {
	files TLS

	mu     sync.Mutex
	latest [][]byte // contents of the last read, valid or not
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

// config returns the configuration of the server.
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
		slog.Error("the changed certificates cannot be used, the previous ones stay in use: " + err.Error())
		return c.used
	}
	slog.Info("the certificates have changed; new connections use the new ones")
	c.used = changed
	return c.used
}

// read returns the contents of the files.
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
