package dev.admissiongateway.worker;

import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;

/**
 * The worker's log, in java.util.logging, which the program configures. {@link LogLines} writes it
 * to standard error. It has uids, never documents.
 */
final class Log {
    static final Logger LOGGER = Logger.getLogger("dev.admissiongateway.worker");

    private Log() {}

    /** The call of a log record: its first parameter. */
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

    /** Logs a failure of a policy, with the exception, if any. */
    static void failure(String message, String policy, String uid, Throwable thrown) {
        LogRecord line = new LogRecord(Level.SEVERE, message);
        line.setLoggerName(LOGGER.getName());
        line.setParameters(new Object[] {new About(policy, uid)});
        line.setThrown(thrown);
        LOGGER.log(line);
    }
}
