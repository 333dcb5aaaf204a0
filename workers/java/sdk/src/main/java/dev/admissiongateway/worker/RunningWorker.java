package dev.admissiongateway.worker;

import io.grpc.Server;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import io.grpc.netty.shaded.io.netty.channel.EventLoopGroup;
import io.grpc.netty.shaded.io.netty.channel.MultiThreadIoEventLoopGroup;
import io.grpc.netty.shaded.io.netty.channel.ServerChannel;
import io.grpc.netty.shaded.io.netty.channel.nio.NioIoHandler;
import io.grpc.netty.shaded.io.netty.channel.socket.nio.NioServerDomainSocketChannel;
import io.grpc.netty.shaded.io.netty.channel.socket.nio.NioServerSocketChannel;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.net.UnixDomainSocketAddress;
import java.net.UnknownHostException;
import java.time.Duration;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;

/**
 * A served worker, until it is closed. Created by {@link Worker#serve}.
 *
 * <p>A worker that closes is first a lame duck: health reports NOT_SERVING, new calls are still
 * answered, and streams end when no call is open on them and no message has arrived for half a
 * second. Then it accepts no more calls, finishes open ones, and after the grace period cancels
 * those that are still open.
 */
public final class RunningWorker implements AutoCloseable {
    /**
     * The shortest interval of keepalive pings: a fifth of the gateway's, since delayed pings can
     * arrive together. With grpc-java's default of five minutes the server would disconnect the
     * gateway (GOAWAY "too_many_pings").
     */
    private static final Duration PING = Duration.ofSeconds(1);

    /**
     * The server pings a client that was silent for this time. Otherwise a gateway whose machine
     * has died would keep its connection, streams and calls for hours.
     */
    private static final Duration QUIET = Duration.ofSeconds(60);

    /** The server disconnects a client that does not answer a ping within this time. */
    private static final Duration PONG = Duration.ofSeconds(20);

    /**
     * One thread accepts. The others only move bytes; two suffice for all calls that the policies'
     * threads can answer.
     */
    private static final int LOOPS = 2;

    /** Time to send the cancellations to all clients: a packet each. */
    private static final Duration FAREWELL = Duration.ofSeconds(1);

    private final Address address;
    private final Limits limits;
    private final Threads threads;
    private final StopSignal stopping = new StopSignal();
    private final Traffic traffic = new Traffic();
    private final InFlight inFlight;
    private final Server server;
    private final ScheduledFuture<?> following;
    private boolean closed;

    RunningWorker(Worker worker, String listen, Limits limits, Tls tls) throws AddressException {
        Address wanted = Address.parse(listen);
        this.limits = limits;
        this.inFlight = new InFlight(limits.inFlight());
        ReloadedTls secured = tls == null ? null : new ReloadedTls(tls);
        SocketAddress place = placeOf(wanted);
        this.threads = new Threads(limits);
        try {
            this.server = server(worker, place, secured);
            start(wanted);
            this.address = wanted.isSocket() ? wanted : wanted.withPort(server.getPort());
        } catch (AddressException | RuntimeException error) {
            threads.shutdown();
            throw error;
        }
        this.following = secured == null ? null : secured.follow(threads.clock());
    }

    /** The address for gRPC clients, with the actual port. */
    public String address() {
        return address.toString();
    }

    /**
     * Stops gracefully, within the grace period, and waits for the end. Further calls do nothing.
     */
    @Override
    public void close() {
        synchronized (this) {
            if (closed) {
                return;
            }
            closed = true;
        }
        long end = System.nanoTime() + limits.gracePeriod().toNanos();
        stopping.begin();
        try {
            // Half of the grace period is for the gateway to leave, half for open calls if it does
            // not.
            traffic.awaitQuiet(limits.gracePeriod().toNanos() / 2);
            server.shutdown();
            if (!server.awaitTermination(
                    Math.max(0, end - System.nanoTime()), TimeUnit.NANOSECONDS)) {
                server.shutdownNow();
                server.awaitTermination(FAREWELL.toMillis(), TimeUnit.MILLISECONDS);
            }
        } catch (InterruptedException interrupted) {
            server.shutdownNow();
            Thread.currentThread().interrupt();
        }
        if (following != null) {
            following.cancel(false);
        }
        threads.shutdown();
    }

    /** The number of calls in flight. */
    int inFlight() {
        return inFlight.count();
    }

    private void start(Address wanted) throws AddressException {
        if (wanted.isSocket()) {
            new SocketFile(wanted).makeFree();
        }
        try {
            server.start();
        } catch (IOException error) {
            Throwable cause = error.getCause() == null ? error : error.getCause();
            throw new AddressException("cannot listen on " + wanted + ": " + cause.getMessage());
        }
    }

    private static SocketAddress placeOf(Address wanted) throws AddressException {
        if (wanted.isSocket()) {
            return UnixDomainSocketAddress.of(wanted.path());
        }
        try {
            return new InetSocketAddress(InetAddress.getByName(wanted.host()), wanted.port());
        } catch (UnknownHostException unknown) {
            throw new AddressException("cannot listen on " + wanted + ": the host is not known");
        }
    }

    private Server server(Worker worker, SocketAddress place, ReloadedTls secured) {
        PolicyCaller caller =
                new PolicyCaller(
                        worker.name(),
                        worker.version(),
                        worker.policies(),
                        limits,
                        threads.plain(),
                        threads.blocking(),
                        Tracing.found());
        Service service =
                new Service(
                        Descriptions.description(
                                worker.name(), worker.version(), worker.policies().values()),
                        caller,
                        limits,
                        inFlight,
                        stopping,
                        traffic,
                        threads.calls(),
                        threads.clock());
        // The JDK's selectors, for TCP and Unix sockets: no native library must be unpacked on a
        // read-only file system.
        Class<? extends ServerChannel> channel =
                place instanceof UnixDomainSocketAddress
                        ? NioServerDomainSocketChannel.class
                        : NioServerSocketChannel.class;
        EventLoopGroup loops =
                threads.loops(
                        () ->
                                new MultiThreadIoEventLoopGroup(
                                        LOOPS,
                                        Threads.named("network"),
                                        NioIoHandler.newFactory()));
        NettyServerBuilder builder =
                NettyServerBuilder.forAddress(place)
                        .channelType(channel)
                        .bossEventLoopGroup(loops)
                        .workerEventLoopGroup(loops)
                        .executor(threads.calls())
                        .maxInboundMessageSize(limits.messageBytes())
                        .permitKeepAliveTime(PING.toMillis(), TimeUnit.MILLISECONDS)
                        .permitKeepAliveWithoutCalls(true)
                        .keepAliveTime(QUIET.toMillis(), TimeUnit.MILLISECONDS)
                        .keepAliveTimeout(PONG.toMillis(), TimeUnit.MILLISECONDS)
                        .addTransportFilter(traffic)
                        .addService(service.definition())
                        .addService(new Health(stopping, traffic).definition());
        if (secured != null) {
            builder.sslContext(secured);
        }
        return builder.build();
    }
}
