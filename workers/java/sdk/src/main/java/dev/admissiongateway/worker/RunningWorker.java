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
 * A worker on its address, until it is closed. Made by {@link Worker#serve}.
 *
 * <p>To close is to be a lame duck first: health says NOT_SERVING, whatever still comes is
 * answered, and streams end when nothing is open on them and nothing has come for half a second.
 * Then no more calls are taken, open ones are finished, and what is still open after the grace
 * period is cancelled.
 */
public final class RunningWorker implements AutoCloseable {
    /**
     * Pings may come so close: five times as often as a gateway sends them, since what it sent in
     * time can arrive together. (grpc-java's default of five minutes would cut off one that watches
     * over its workers: GOAWAY "too_many_pings".)
     */
    private static final Duration PING = Duration.ofSeconds(1);

    /**
     * A gateway that says nothing for so long is pinged: one whose machine has died would keep its
     * connection, its streams and what it had asked for hours.
     */
    private static final Duration QUIET = Duration.ofSeconds(60);

    /** And let go of when it does not answer within so long. */
    private static final Duration PONG = Duration.ofSeconds(20);

    /**
     * One to accept; the others only move bytes, which two can for all that the policies' threads
     * can judge.
     */
    private static final int LOOPS = 2;

    /** For telling everybody that their calls are cancelled: a packet each. */
    private static final Duration FAREWELL = Duration.ofSeconds(1);

    private final Address address;
    private final Limits limits;
    private final Threads threads;
    private final Stopping stopping = new Stopping();
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

    /** The address for a gRPC client, with the port that was found where 0 was asked for. */
    public String address() {
        return address.toString();
    }

    /**
     * Stops gracefully, within the grace period, and waits for it. What comes later than the first
     * call does nothing.
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
            // Half of the time for the gateway to go, half for what stays open when it does not.
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

    /** How many calls are being worked on. */
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
        Judging judging =
                new Judging(
                        worker.name(),
                        worker.version(),
                        worker.policies(),
                        limits,
                        threads.plain(),
                        threads.blocking(),
                        Tracing.found());
        Service service =
                new Service(
                        Describing.description(
                                worker.name(), worker.version(), worker.policies().values()),
                        judging,
                        limits,
                        inFlight,
                        stopping,
                        traffic,
                        threads.calls(),
                        threads.clock());
        // Java's own selectors on TCP and Unix sockets alike: no native library to unpack where
        // nothing may be written.
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
