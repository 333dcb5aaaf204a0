// A real kube-apiserver with a real etcd, in one process on free ports of loopback, for the tests marked e2e.
//
//	apiserver DIRECTORY [FLAG OF KUBE-APISERVER]...
//
// DIRECTORY is etcd's. Once ready, it prints "serving https://127.0.0.1:PORT". It ends on a signal, and when its standard
// input ends: a test run that is killed leaves no server behind.
//
// It compiles against every release from 1.29 on: where a signature differs between them, the type of the function decides.
package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"time"

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/embed"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

const pollInterval = 50 * time.Millisecond

func main() {
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(directory string, flags []string) error {
	ctx, cancel := context.WithCancel(genericapiserver.SetupSignalContext())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	etcd, err := startEtcd(directory)
	if err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	defer etcd.Close()
	server, err := configure(ctx, append(flags, "--etcd-servers=http://"+etcd.Clients[0].Addr().String()))
	if err != nil {
		return err
	}
	go announce(ctx, "https://"+server.SecureServing.Listener.Addr().String())
	return serve(ctx, server)
}

// serve runs the API server until ctx ends. app.Run is given a channel before 1.31.
func serve(ctx context.Context, server options.CompletedOptions) error {
	switch run := any(app.Run).(type) {
	case func(context.Context, options.CompletedOptions) error:
		return run(ctx, server)
	case func(options.CompletedOptions, <-chan struct{}) error:
		return run(server, ctx.Done())
	default:
		return fmt.Errorf("app.Run is a %T", run)
	}
}

func startEtcd(directory string) (*embed.Etcd, error) {
	anyPort := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	config := embed.NewConfig()
	config.Dir = directory
	config.ListenPeerUrls, config.AdvertisePeerUrls = anyPort, anyPort
	config.ListenClientUrls, config.AdvertiseClientUrls = anyPort, anyPort
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	config.EnableGRPCGateway = false // it calls the port that is advertised
	config.UnsafeNoFsync = true
	config.LogLevel = "error"
	etcd, err := embed.StartEtcd(config)
	if err == nil {
		<-etcd.Server.ReadyNotify()
	}
	return etcd, err
}

// configure does what kube-apiserver's command does, with a listener of ours: --secure-port accepts no 0.
func configure(ctx context.Context, flags []string) (options.CompletedOptions, error) {
	server := options.NewServerRunOptions()
	known := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	for _, set := range server.Flags().FlagSets {
		known.AddFlagSet(set)
	}
	if err := known.Parse(flags); err != nil {
		return options.CompletedOptions{}, err
	}
	if err := setFeatureGates(server); err != nil {
		return options.CompletedOptions{}, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return options.CompletedOptions{}, err
	}
	server.SecureServing.Listener = listener
	server.SecureServing.BindPort = listener.Addr().(*net.TCPAddr).Port
	completed, err := complete(ctx, server)
	if err != nil {
		return completed, err
	}
	return completed, utilerrors.NewAggregate(completed.Validate())
}

// setFeatureGates applies --feature-gates, which before 1.31 was done when the flag was read: there is no such field.
func setFeatureGates(server *options.ServerRunOptions) error {
	registry := reflect.ValueOf(server.GenericServerRunOptions).Elem().FieldByName("ComponentGlobalsRegistry")
	if !registry.IsValid() {
		return nil
	}
	return registry.Interface().(interface{ Set() error }).Set()
}

// complete fills in the defaults. Complete is given a context from 1.32 on.
func complete(ctx context.Context, server *options.ServerRunOptions) (options.CompletedOptions, error) {
	switch complete := any(server.Complete).(type) {
	case func(context.Context) (options.CompletedOptions, error):
		return complete(ctx)
	case func() (options.CompletedOptions, error):
		return complete()
	default:
		return options.CompletedOptions{}, fmt.Errorf("ServerRunOptions.Complete is a %T", complete)
	}
}

func announce(ctx context.Context, address string) {
	client := http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
		DisableKeepAlives: true,
	}}
	ready := func(context.Context) (bool, error) {
		response, err := client.Get(address + "/readyz")
		if err != nil {
			return false, nil
		}
		defer response.Body.Close()
		return response.StatusCode == http.StatusOK, nil
	}
	if wait.PollUntilContextCancel(ctx, pollInterval, true, ready) == nil {
		fmt.Println("serving " + address)
	}
}
