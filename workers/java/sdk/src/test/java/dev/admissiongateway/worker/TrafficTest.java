package dev.admissiongateway.worker;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.grpc.Attributes;

import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

/** Counts of connections. */
class TrafficTest {
    @Test
    @DisplayName("A connection that ends before its handshake does not change the count.")
    void neverReady() {
        Traffic traffic = new Traffic();
        Attributes gateway = traffic.transportReady(Attributes.EMPTY);
        traffic.transportTerminated(null);
        traffic.transportTerminated(Attributes.EMPTY);
        assertEquals(1, traffic.connections());
        traffic.transportTerminated(gateway);
        assertEquals(0, traffic.connections());
    }
}
