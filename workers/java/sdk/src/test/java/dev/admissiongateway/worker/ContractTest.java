package dev.admissiongateway.worker;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

import java.nio.file.Files;
import java.nio.file.Path;

/** The messages are generated from a copy of the contract, so that this folder builds alone. */
class ContractTest {
    private static final String PROTO = "admission/worker/v1/worker.proto";

    @Test
    @DisplayName("The copy equals the contract; `make proto` updates it.")
    void copy() throws Exception {
        Path repository = Path.of(System.getProperty("repository"));
        assertEquals(
                Files.readString(repository.resolve("proto").resolve(PROTO)),
                Files.readString(Path.of("src/main/protobuf").resolve(PROTO)));
    }
}
