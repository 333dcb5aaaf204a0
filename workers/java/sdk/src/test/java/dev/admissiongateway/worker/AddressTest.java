package dev.admissiongateway.worker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;

/** Addresses, and listening on them. */
class AddressTest {
    @TempDir Path folder;

    private static final Worker WORKER =
            new Worker("w", "1").register(Policy.validating("quick").judge(request -> null));

    private static String refused(String address) {
        AddressException error =
                assertThrows(AddressException.class, () -> WORKER.serve(address).close());
        assertFalse(error.getMessage().contains("\n"));
        return error.getMessage();
    }

    @ParameterizedTest
    @DisplayName("All forms of addresses are parsed.")
    @CsvSource({
        "127.0.0.1:0,127.0.0.1:0",
        "dns:///localhost:50051,localhost:50051",
        "[::1]:7,[::1]:7",
        "unix:a/b,unix:a/b",
        "unix:///run/a.sock,unix:/run/a.sock",
        "0.0.0.0:65535,0.0.0.0:65535"
    })
    void read(String written, String read) throws Exception {
        assertEquals(read, Address.parse(written).toString());
    }

    @ParameterizedTest
    @DisplayName("Invalid addresses are rejected.")
    @ValueSource(
            strings = {
                "",
                "localhost",
                ":1",
                "::1:1",
                "a:65536",
                "a:-1",
                "a:b",
                "unix:",
                "unix://a",
                "http://a:1",
                "a:١"
            })
    void noAddress(String text) {
        assertThrows(AddressException.class, () -> Address.parse(text));
    }

    @Test
    @DisplayName("The path of a Unix socket has at most 107 bytes.")
    void longPaths() throws Exception {
        assertTrue(Address.parse("unix:" + "a".repeat(107)).isSocket());
        assertThrows(AddressException.class, () -> Address.parse("unix:" + "ä".repeat(54)));
    }

    @Test
    @DisplayName("Port 0 is any free port, and the address has it; a port in use is rejected.")
    void ports() throws Exception {
        try (ServedWorker first = ServedWorker.serve(WORKER)) {
            assertFalse(first.running().address().endsWith(":0"));
            assertTrue(
                    refused(first.running().address()).startsWith("cannot listen on 127.0.0.1:"));
        }
        assertTrue(refused("host.invalid:0").contains("the host is not known"));
    }

    @Test
    @DisplayName("A Unix socket is served, and its file is gone afterwards.")
    void socket() throws Exception {
        String address = "unix:" + folder.resolve("w.sock");
        try (RunningWorker running = WORKER.serve(address);
                ServedWorker wire = ServedWorker.to(address)) {
            assertEquals(address, running.address());
            assertEquals("w", wire.describe().getWorker());
            assertTrue(refused(address).contains("another process listens there"));
            assertEquals("w", wire.describe().getWorker());
        }
        assertFalse(Files.exists(folder.resolve("w.sock")));
    }

    @Test
    @DisplayName("A stale socket is replaced; a file that is not a socket is not.")
    void leftBehind() throws Exception {
        Path orphan = folder.resolve("orphan.sock");
        try (ServerSocketChannel made = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
            made.bind(UnixDomainSocketAddress.of(orphan));
        }
        assertTrue(Files.exists(orphan));
        WORKER.serve("unix:" + orphan).close();
        Path file = Files.writeString(folder.resolve("file"), "mine");
        assertTrue(refused("unix:" + file).contains("the file is no socket"));
        assertEquals("mine", Files.readString(file));
        assertTrue(refused("unix:" + folder.resolve("none/w.sock")).contains("no directory"));
    }
}
