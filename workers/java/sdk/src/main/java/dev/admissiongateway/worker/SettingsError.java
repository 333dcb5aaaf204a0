package dev.admissiongateway.worker;

import java.util.Objects;

/**
 * One error in settings.
 *
 * @param pointer the JSON Pointer (RFC 6901) of the value in the settings, such as {@code
 *     /labels/team}; empty: the whole settings
 * @param message what is expected and what was found, in one sentence
 */
public record SettingsError(String pointer, String message) implements Finding {
    /** Validates the values. */
    public SettingsError {
        Objects.requireNonNull(pointer, "pointer");
        Objects.requireNonNull(message, "message");
    }

    /** {@code /labels/team: must be a text, is a number}. */
    @Override
    public String toString() {
        return pointer.isEmpty() ? message : pointer + ": " + message;
    }
}
