package dev.admissiongateway.worker;

import java.util.Objects;

/**
 * What the operator should know about settings that are accepted, such as a deprecated member.
 *
 * @param message one sentence
 */
public record SettingsWarning(String message) implements Finding {
    /** Checks the message. */
    public SettingsWarning {
        Objects.requireNonNull(message, "message");
    }
}
