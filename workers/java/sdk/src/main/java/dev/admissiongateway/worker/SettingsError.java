package dev.admissiongateway.worker;

import java.util.Objects;

/**
 * One thing that is wrong with settings.
 *
 * @param pointer where, as a JSON Pointer (RFC 6901) over the settings, such as {@code
 *     /labels/team}; empty: the settings as a whole
 * @param message what is expected and what was found, in one sentence
 */
public record SettingsError(String pointer, String message) implements Finding {
    /** Checks that both are there. */
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
