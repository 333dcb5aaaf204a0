package dev.admissiongateway.worker;

import io.grpc.netty.shaded.io.netty.buffer.ByteBufAllocator;
import io.grpc.netty.shaded.io.netty.handler.ssl.ApplicationProtocolNegotiator;
import io.grpc.netty.shaded.io.netty.handler.ssl.SslContext;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;

import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLSessionContext;

/**
 * The TLS of a server, reloaded when its files change. New connections use the new certificates;
 * open ones stay. Each version has its own session cache, so that no client resumes a session that
 * the new CAs would reject.
 */
final class ReloadedTls extends SslContext {
    /**
     * The time between two checks of the files. Certificates are renewed days before they expire; a
     * second is short enough for tests by hand.
     */
    private static final Duration PAUSE = Duration.ofSeconds(1);

    private final Tls files;
    private volatile SslContext current;
    private Certificates used;
    private String complaint = "";

    /**
     * Reads the files.
     *
     * @throws AddressException the files cannot be used
     */
    ReloadedTls(Tls files) throws AddressException {
        this.files = files;
        try {
            this.used = Certificates.read(files);
            this.current = used.context();
        } catch (Certificates.UnusableException error) {
            throw new AddressException("cannot serve TLS: " + error.getMessage());
        }
    }

    /** Checks the files periodically, until the future is cancelled. */
    ScheduledFuture<?> follow(ScheduledExecutorService clock) {
        return clock.scheduleWithFixedDelay(
                this::look, PAUSE.toMillis(), PAUSE.toMillis(), TimeUnit.MILLISECONDS);
    }

    private void look() {
        try {
            Certificates now = Certificates.read(files);
            if (!now.equals(used)) {
                current = now.context();
                used = now;
                Log.info("the certificates have changed; new connections use the new ones");
            }
            complaint = "";
        } catch (Certificates.UnusableException | RuntimeException error) {
            String found =
                    "the changed certificates cannot be used, the previous ones stay in use: "
                            + error.getMessage();
            if (!found.equals(complaint)) { // once, not with each check
                complaint = found;
                Log.error(found);
            }
        }
    }

    @Override
    public boolean isClient() {
        return false;
    }

    @Override
    public List<String> cipherSuites() {
        return current.cipherSuites();
    }

    @Override
    @SuppressWarnings("deprecation") // abstract in Netty, so it must be implemented
    public ApplicationProtocolNegotiator applicationProtocolNegotiator() {
        return current.applicationProtocolNegotiator();
    }

    @Override
    public SSLEngine newEngine(ByteBufAllocator allocator) {
        return current.newEngine(allocator);
    }

    @Override
    public SSLEngine newEngine(ByteBufAllocator allocator, String host, int port) {
        return current.newEngine(allocator, host, port);
    }

    @Override
    public SSLSessionContext sessionContext() {
        return current.sessionContext();
    }
}
