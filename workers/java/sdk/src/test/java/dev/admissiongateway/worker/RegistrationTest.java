package dev.admissiongateway.worker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import admission.worker.v1.WorkerOuterClass.DescribeResponse;
import admission.worker.v1.WorkerOuterClass.Phase;
import admission.worker.v1.WorkerOuterClass.PolicyDescription;

import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.util.List;
import java.util.stream.IntStream;

/** An invalid registration is an error at the start; Describe returns valid ones. */
class RegistrationTest {
    private static Policy.Builder<Void> policy() {
        return Policy.validating("a");
    }

    private static void refused(String part, Executable registering) {
        String message = assertThrows(IllegalArgumentException.class, registering).getMessage();
        assertTrue(message.contains(part), message);
    }

    @ParameterizedTest
    @DisplayName("A policy's name is a DNS-1123 label.")
    @ValueSource(strings = {"", "A", "a_b", "-a", "a-", "a.b", "ä", "a\n"})
    void names(String name) {
        refused("DNS-1123 label", () -> Policy.validating(name));
    }

    @Test
    @DisplayName("A name has at most 63 characters.")
    void longNames() {
        assertEquals(63, Policy.mutating("a".repeat(63)).judge(request -> null).name().length());
        refused("DNS-1123 label", () -> Policy.mutating("a".repeat(64)));
    }

    @Test
    @DisplayName("A duplicate name is an error.")
    void twice() {
        Worker worker = new Worker("w", "1").register(policy().judge(request -> null));
        refused(
                "\"a\" is registered already",
                () -> worker.register(policy().judge(request -> null)));
    }

    @Test
    @DisplayName("A worker has a version.")
    void version() {
        refused("a version is required", () -> new Worker("w", ""));
        refused("a version is required", () -> new Worker("w", null));
    }

    @ParameterizedTest
    @DisplayName("Inputs are JSON Pointers over an AdmissionRequest, without its uid.")
    @ValueSource(strings = {"", "object", "/object/~2", "/uid", "/metadata", "/object/~", "/*"})
    void inputs(String pointer) {
        refused("policy a: inputs", () -> policy().inputs(pointer).judge(request -> null));
    }

    @ParameterizedTest
    @DisplayName("Writes are JSON Pointers over the object, without its kind.")
    @ValueSource(strings = {"", "metadata", "/kind", "/apiVersion/x", "/*"})
    void writes(String pointer) {
        refused(
                "policy a: writes",
                () -> Policy.mutating("a").writes(pointer).judge(request -> null));
    }

    @Test
    @DisplayName("There are at most 256 pointers, of at most 256 segments.")
    void manyPointers() {
        List<String> many =
                IntStream.range(0, 257).mapToObj(number -> "/object/" + number).toList();
        refused("at most 256", () -> policy().inputs(many).judge(request -> null));
        refused(
                "more than 256 segments",
                () -> policy().inputs("/object" + "/a".repeat(256)).judge(request -> null));
    }

    @Test
    @DisplayName("A validating policy cannot set writes, not even an empty list.")
    void validatingWrites() {
        refused("changes nothing", () -> policy().writes("/metadata").judge(request -> null));
        refused("changes nothing", () -> policy().writes().judge(request -> null));
    }

    @Test
    @DisplayName("An author's schema is a JSON object.")
    void schema() {
        refused("the schema must be", () -> policy().schema("[]"));
        refused("the schema must be", () -> policy().schema("{"));
    }

    @Test
    @DisplayName("Describe returns registrations, and distinguishes empty, full and absent claims.")
    void described() throws Exception {
        Worker worker =
                new Worker("w", "1.2")
                        .register(
                                policy().description("Denies.")
                                        .version("7")
                                        .inputs()
                                        .judge(request -> null))
                        .register(
                                Policy.mutating("b")
                                        .inputs("/object/a", "/object/a")
                                        .writes("/a")
                                        .judge(request -> null))
                        .register(
                                Policy.mutating("c")
                                        .inputs(Claim.everything())
                                        .judge(request -> null));
        DescribeResponse described;
        try (ServedWorker wire = ServedWorker.serve(worker)) {
            described = wire.describe();
        }
        assertEquals("w", described.getWorker());
        assertEquals("1.2", described.getVersion());
        PolicyDescription first = described.getPolicies(0);
        assertEquals("Denies.", first.getDescription());
        assertEquals("7", first.getVersion());
        assertEquals(List.of(Phase.PHASE_VALIDATING), first.getPhasesList());
        assertTrue(first.getInputs().hasPointers());
        assertEquals(0, first.getInputs().getPointers().getPointersCount());
        assertFalse(first.hasWrites());
        assertEquals(
                List.of("/object/a"),
                described.getPolicies(1).getInputs().getPointers().getPointersList());
        assertEquals(
                List.of("/a"),
                described.getPolicies(1).getWrites().getPointers().getPointersList());
        assertTrue(described.getPolicies(2).getInputs().hasEverything());
        assertFalse(described.getPolicies(2).hasWrites());
        assertTrue(described.getPolicies(2).getSettingsSchema().toStringUtf8().contains("2020-12"));
    }
}
