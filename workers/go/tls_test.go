package worker_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"admission-gateway.dev/worker"
	"admission-gateway.dev/worker/workerv1"
)

// authority makes certificates for a test.
type authority struct {
	t           *testing.T
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	serial      int64
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	made := &authority{t: t}
	made.certificate, made.key = made.sign(&x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return made
}

// sign returns a certificate for a new key; the first one is that of the authority itself.
func (a *authority) sign(template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	a.serial++
	template.SerialNumber = big.NewInt(a.serial)
	template.Subject = pkix.Name{CommonName: "tested"}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.certificate, a.key
	if parent == nil {
		parent, signer = template, key
	}
	content, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		a.t.Fatal(err)
	}
	made, err := x509.ParseCertificate(content)
	if err != nil {
		a.t.Fatal(err)
	}
	return made, key
}

// pair returns a certificate for 127.0.0.1 and its key, in PEM.
func (a *authority) pair() (certificate, key []byte) {
	a.t.Helper()
	made, private := a.sign(&x509.Certificate{
		IPAddresses: []net.IP{net.ParseIP("127.0.0.1")}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	content, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		a.t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made.Raw}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: content})
}

// pem returns the authority's own certificate.
func (a *authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})
}

// trust returns the credentials of a client that trusts the authority, with or without a certificate of its own.
func (a *authority) trust(own ...tls.Certificate) grpc.DialOption {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: pool, Certificates: own}))
}

// client returns a certificate for a client.
func (a *authority) client() tls.Certificate {
	a.t.Helper()
	made, err := tls.X509KeyPair(a.pair())
	if err != nil {
		a.t.Fatal(err)
	}
	return made
}

// files is a temporary folder of a test.
type files struct {
	t      *testing.T
	folder string
}

func (f files) write(name string, content []byte) string {
	f.t.Helper()
	path := filepath.Join(f.folder, name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		f.t.Fatal(err)
	}
	return path
}

// serving writes a pair of the authority, and returns its paths.
func (f files) serving(from *authority) worker.TLS {
	certificate, key := from.pair()
	return worker.TLS{Cert: f.write("cert.pem", certificate), Key: f.write("key.pem", key)}
}

// code returns the status code of a Describe over a new connection.
func code(t *testing.T, address string, options ...grpc.DialOption) codes.Code {
	t.Helper()
	_, err := connect(t, address, options...).Describe(within(t), &workerv1.DescribeRequest{})
	return status.Code(err)
}

func TestWithACertificateOnlyTLSIsServed(t *testing.T) {
	trusted := newAuthority(t)
	connected := served(t, worker.Options{TLS: files{t, t.TempDir()}.serving(trusted)}, sound)
	address := connected.server.Address()
	if found := code(t, address, trusted.trust()); found != codes.OK {
		t.Error(found)
	}
	if found := code(t, address); found != codes.Unavailable {
		t.Errorf("in the clear: %v", found)
	}
	if found := code(t, address, newAuthority(t).trust()); found != codes.Unavailable {
		t.Errorf("by another authority: %v", found)
	}
	connection, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS11, NextProtos: []string{"h2"}})
	if err == nil {
		_ = connection.Close()
		t.Error("TLS 1.1 should be refused")
	}
}

func TestOnlyClientsOfTheClientCAAreServed(t *testing.T) {
	trusted, clients := newAuthority(t), newAuthority(t)
	folder := files{t, t.TempDir()}
	files := folder.serving(trusted)
	files.ClientCA = folder.write("clients.pem", clients.pem())
	address := served(t, worker.Options{TLS: files}, sound).server.Address()
	if found := code(t, address, trusted.trust(clients.client())); found != codes.OK {
		t.Error(found)
	}
	if found := code(t, address, trusted.trust()); found != codes.Unavailable {
		t.Errorf("without a certificate: %v", found)
	}
	if found := code(t, address, trusted.trust(trusted.client())); found != codes.Unavailable {
		t.Errorf("with a certificate of another CA: %v", found)
	}
}

func TestChangedCertificatesAreReloaded(t *testing.T) {
	before, after, clients, others := newAuthority(t), newAuthority(t), newAuthority(t), newAuthority(t)
	folder := files{t, t.TempDir()}
	used := folder.serving(before)
	used.ClientCA = folder.write("clients.pem", clients.pem())
	address := served(t, worker.Options{TLS: used}, sound).server.Address()
	open := connect(t, address, before.trust(clients.client()))
	if open.review(t, call("sound", worker.Validating)).GetAllow() == nil {
		t.Error("it should serve")
	}
	certificate, key := after.pair()
	folder.write("cert.pem", certificate) // its key comes a moment later
	if found := code(t, address, before.trust(clients.client())); found != codes.OK {
		t.Errorf("what was used should stay: %v", found)
	}
	folder.write("key.pem", key)
	if found := code(t, address, after.trust(clients.client())); found != codes.OK {
		t.Errorf("the new one should be used: %v", found)
	}
	folder.write("clients.pem", others.pem())
	if found := code(t, address, after.trust(others.client())); found != codes.OK {
		t.Errorf("the new authorities should be used: %v", found)
	}
	if found := code(t, address, after.trust(clients.client())); found != codes.Unavailable {
		t.Errorf("the old authorities should not: %v", found)
	}
	for _, path := range []string{used.Cert, used.Key, used.ClientCA} {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if found := code(t, address, after.trust(others.client())); found != codes.OK {
		t.Errorf("without files, what was used should stay: %v", found)
	}
	if open.review(t, call("sound", worker.Validating)).GetAllow() == nil {
		t.Error("an open connection should stay")
	}
}

func TestUnusableFilesAreAnError(t *testing.T) {
	folder := files{t, t.TempDir()}
	sane := folder.serving(newAuthority(t))
	nothing := folder.write("nothing.pem", []byte("nothing"))
	made, _ := worker.New("tested", "1", sound)
	for _, broken := range []worker.TLS{
		{Cert: sane.Cert}, {ClientCA: sane.Cert}, {Cert: nothing, Key: sane.Key}, {Cert: sane.Cert, Key: "none.pem"},
		{Cert: sane.Cert, Key: sane.Key, ClientCA: nothing},
	} {
		if _, err := made.Serve("127.0.0.1:0", worker.Options{TLS: broken}); err == nil || strings.Contains(err.Error(), "\n") {
			t.Error(broken, err)
		}
	}
}
