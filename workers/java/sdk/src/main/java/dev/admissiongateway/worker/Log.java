package dev.admissiongateway.worker;

import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;

/**
 * The worker's log, in java.util.logging: what it says goes where the program says. {@link
 * LogLines} sends it to standard error. Documents are never logged, uids are.
 */
final class Log {
    static final Logger LOGGER = Logger.getLogger("dev.admissiongateway.worker");

    private Log() {}

    /** Which call a line is about; the record's first parameter. */
    record About(String policy, String uid) {}

    static void debug(String message) {
        LOGGER.log(Level.FINE, message);
    }

    static void info(String message) {
        LOGGER.log(Level.INFO, message);
    }

    static void warning(String message) {
        LOGGER.log(Level.WARNING, message);
    }

    static void error(String message) {
        LOGGER.log(Level.SEVERE, message);
    }

    /** A failure of a policy, with what was thrown, if anything was. */
    static void failure(String message, String policy, String uid, Throwable thrown) {
        LogRecord line = new LogRecord(Level.SEVERE, message);
        line.setLoggerName(LOGGER.getName());
        line.setParameters(new Object[] {new About(policy, uid)});
        line.setThrown(thrown);
        LOGGER.log(line);
    }
}
