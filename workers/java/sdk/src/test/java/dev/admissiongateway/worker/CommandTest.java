package dev.admissiongateway.worker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import admission.worker.v1.WorkerOuterClass.PolicyCall;

import com.fasterxml.jackson.databind.JsonNode;
import com.google.protobuf.ByteString;

import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.logging.Level;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The command, as a process: its flags, its log and its exit codes. */
class CommandTest {
    private static final Map<String, String> NOTHING = Map.of();

    @TempDir Path folder;

    private static Options options(Map<String, String> environment, String... arguments)
            throws Exception {
        return Options.read(arguments, environment);
    }

    private static PolicyCall waits(int milliseconds) {
        String document = "{\"name\":\"" + milliseconds + "\"}";
        return ServedWorker.validating("wait")
                .setDocument(ByteString.copyFromUtf8(document))
                .build();
    }

    @Test
    @DisplayName("Without flags all values are the defaults.")
    void defaults() throws Exception {
        Options options = options(NOTHING);
        assertEquals("127.0.0.1:50051", options.listen());
        assertEquals(Limits.defaults(), options.limits());
        assertEquals(4096, options.limits().inFlight());
        assertEquals(41_048_576, options.limits().messageBytes());
        assertEquals(Level.INFO, options.level());
        assertFalse(options.conformance() || options.json() || options.supervised());
    }

    @Test
    @DisplayName("A flag takes precedence over its variable.")
    void variables() throws Exception {
        Map<String, String> environment =
                Map.of(
                        "ADMISSION_WORKER_IN_FLIGHT",
                        "7",
                        "ADMISSION_WORKER_GRACE_PERIOD",
                        "0.5",
                        "ADMISSION_WORKER_CONFORMANCE",
                        "1",
                        "ADMISSION_WORKER_LOG_FORMAT",
                        "json",
                        "ADMISSION_WORKER_SUPERVISED",
                        "1",
                        "ADMISSION_WORKER_LISTEN",
                        "unix:a");
        Options options =
                options(
                        environment,
                        "--in-flight",
                        "8",
                        "--listen=[::1]:0",
                        "--log-level",
                        "debug");
        assertEquals(8, options.limits().inFlight());
        assertEquals(Duration.ofMillis(500), options.limits().gracePeriod());
        assertEquals("[::1]:0", options.listen());
        assertEquals(Level.FINE, options.level());
        assertTrue(options.conformance() && options.json() && options.supervised());
    }

    @ParameterizedTest
    @DisplayName("An invalid flag or value is an error of one line that names it.")
    @ValueSource(
            strings = {
                "--unknown 1",
                "--listen",
                "--listen nonsense",
                "--in-flight 0",
                "--in-flight many",
                "--grace-period -1",
                "--grace-period NaN",
                "--log-format xml",
                "--log-level loud",
                "--message-bytes 99999999999",
                "--tls-cert a",
                "--client-ca a",
                "extra"
            })
    void wrong(String line) {
        String[] arguments = line.split(" ");
        String message =
                assertThrows(Options.WrongException.class, () -> options(NOTHING, arguments))
                        .getMessage();
        assertTrue(message.contains(arguments[0]) && !message.contains("\n"), message);
    }

    @Test
    @DisplayName(
            "The worker logs its address and policies, answers, and exits with 0 after a"
                    + " signal.")
    void servesAndStops() throws Exception {
        try (WorkerProcess started = new WorkerProcess(NOTHING, "--listen", "127.0.0.1:0")) {
            String line = started.line("listens on");
            assertTrue(
                    line.matches(
                            ".* INFO worker program 1.2.3 listens on 127.0.0.1:[1-9]\\d*; policies:"
                                    + " quick, throws, wait"),
                    line);
            started.signal();
            assertEquals(0, started.exitCode());
        }
    }

    @Test
    @DisplayName(
            "A stopping worker answers open calls first; a second signal ends it at once,"
                    + " with 1.")
    void signals() throws Exception {
        String address = "unix:" + folder.resolve("w.sock");
        try (WorkerProcess started =
                new WorkerProcess(NOTHING, "--listen", address, "--grace-period", "60")) {
            started.address();
            try (ServedWorker wire = ServedWorker.to(address)) {
                StreamClient stream = wire.stream();
                stream.call(1, waits(300).toBuilder()).call(2, waits(600_000).toBuilder());
                wire.stream().call(1, ServedWorker.validating("quick")).only(1);
                started.signal();
                started.line("stopping");
                assertEquals("waited", stream.only(1).getDeny().getMessage());
                started.signal();
                assertEquals(1, started.exitCode());
            }
        }
    }

    @Test
    @DisplayName("After the grace period the worker exits with 0, even with open calls.")
    void grace() throws Exception {
        try (WorkerProcess started =
                new WorkerProcess(NOTHING, "--listen", "127.0.0.1:0", "--grace-period", "0.2")) {
            try (ServedWorker wire = ServedWorker.to(started.address())) {
                wire.stream()
                        .call(1, waits(600_000).toBuilder())
                        .call(2, ServedWorker.validating("quick"))
                        .only(2);
                started.signal();
                assertEquals(0, started.exitCode());
            }
        }
    }

    @Test
    @DisplayName("A supervised worker stops when its standard input ends.")
    void supervised() throws Exception {
        Map<String, String> environment = Map.of("ADMISSION_WORKER_SUPERVISED", "1");
        try (WorkerProcess started = new WorkerProcess(environment, "--listen", "127.0.0.1:0")) {
            started.address();
            started.endInput();
            started.line("standard input has ended");
            assertEquals(0, started.exitCode());
        }
    }

    @Test
    @DisplayName(
            "Errors are one line; the exit code is 2 for a flag, 1 for an address in use or a"
                    + " certificate.")
    void exitCodes() throws Exception {
        try (WorkerProcess wrong = new WorkerProcess(NOTHING, "--in-flight", "0")) {
            assertEquals(2, wrong.exitCode());
            assertTrue(wrong.next().contains("--in-flight: must be"));
        }
        try (ServedWorker there = ServedWorker.serve(new Worker("w", "1"));
                WorkerProcess taken =
                        new WorkerProcess(NOTHING, "--listen", there.running().address())) {
            assertEquals(1, taken.exitCode());
            assertTrue(taken.next().contains("ERROR cannot listen on"));
        }
        try (WorkerProcess uncertified =
                new WorkerProcess(
                        NOTHING, "--listen", "127.0.0.1:0", "--tls-cert", "a", "--tls-key", "b")) {
            assertEquals(1, uncertified.exitCode());
            assertTrue(uncertified.next().contains("--tls-cert a: there is no such file"));
        }
    }

    @Test
    @DisplayName(
            "JSON logs are an object a line; a failure has its uid and policy, and no line"
                    + " has the document.")
    void logs() throws Exception {
        String[] arguments = {"--listen", "127.0.0.1:0", "--log-format", "json", "--conformance"};
        try (WorkerProcess started = new WorkerProcess(NOTHING, arguments)) {
            JsonNode listens = Json.read(ByteString.copyFromUtf8(started.line("listens on")));
            Pattern address =
                    Pattern.compile("listens on (\\S+); policies: quick, .*probe-version$");
            Matcher found = address.matcher(listens.get("message").textValue());
            assertTrue(found.find());
            try (ServedWorker wire = ServedWorker.to(found.group(1))) {
                ByteString document = ByteString.copyFromUtf8("{\"object\":\"of-the-document\"}");
                wire.review(ServedWorker.validating("throws").setDocument(document).build());
            }
            String line = started.line("policy throws threw");
            JsonNode failure = Json.read(ByteString.copyFromUtf8(line));
            assertEquals("error", failure.get("level").textValue());
            assertEquals("the-uid", failure.get("uid").textValue());
            assertEquals("throws", failure.get("policy").textValue());
            assertTrue(failure.get("exception").textValue().contains("a secret"));
            assertTrue(
                    failure.get("time")
                            .textValue()
                            .matches("\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z"));
            assertFalse(line.contains("of-the-document"));
        }
    }
}
