package dev.admissiongateway.worker;

import java.util.List;
import java.util.stream.Collectors;

/** The operator's fault: all that is wrong with a policy's settings. */
public final class InvalidSettingsException extends Exception {
    private static final long serialVersionUID = 1;

    private final transient List<SettingsError> errors;

    InvalidSettingsException(List<SettingsError> errors) {
        super(errors.stream().map(SettingsError::toString).collect(Collectors.joining("; ")));
        this.errors = List.copyOf(errors);
    }

    /** One for each thing that is wrong; never empty. */
    public List<SettingsError> errors() {
        return errors;
    }
}
