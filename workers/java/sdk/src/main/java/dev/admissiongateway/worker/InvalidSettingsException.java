package dev.admissiongateway.worker;

import java.util.List;
import java.util.stream.Collectors;

/** All errors in a policy's settings: errors of the operator. */
public final class InvalidSettingsException extends Exception {
    private static final long serialVersionUID = 1;

    private final transient List<SettingsError> errors;

    InvalidSettingsException(List<SettingsError> errors) {
        super(errors.stream().map(SettingsError::toString).collect(Collectors.joining("; ")));
        this.errors = List.copyOf(errors);
    }

    /** The errors, never empty. */
    public List<SettingsError> errors() {
        return errors;
    }
}
