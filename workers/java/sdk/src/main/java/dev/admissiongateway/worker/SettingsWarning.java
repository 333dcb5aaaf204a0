package dev.admissiongateway.worker;

import java.util.Objects;

/**
 * A warning about settings that are accepted, such as a deprecated member.
 *
 * @param message one sentence
 */
public record SettingsWarning(String message) implements Finding {
    /** Validates the message. */
    public SettingsWarning {
        Objects.requireNonNull(message, "message");
    }
}
