package dev.admissiongateway.worker;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Locale;
import java.util.Map;
import java.util.logging.ConsoleHandler;
import java.util.logging.Formatter;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogManager;
import java.util.logging.LogRecord;
import java.util.logging.Logger;

/** Writes one line for each event to standard error, as text or JSON. */
final class LogLines extends Formatter {
    /** The values of {@code --log-level}, with the levels of java.util.logging. */
    static final Map<String, Level> LEVELS =
            Map.of(
                    "debug",
                    Level.FINE,
                    "info",
                    Level.INFO,
                    "warning",
                    Level.WARNING,
                    "error",
                    Level.SEVERE);

    /** RFC 3339, in UTC, to the millisecond. */
    private static final DateTimeFormatter TIME =
            DateTimeFormatter.ofPattern("yyyy-MM-dd'T'HH:mm:ss.SSS'Z'").withZone(ZoneOffset.UTC);

    private final boolean json;

    LogLines(boolean json) {
        this.json = json;
    }

    /** Sends the whole log of this process to standard error. */
    static void start(boolean json, Level level) {
        LogManager.getLogManager().reset();
        Handler handler = new ConsoleHandler();
        handler.setFormatter(new LogLines(json));
        handler.setLevel(Level.ALL);
        Logger root = Logger.getLogger("");
        root.addHandler(handler);
        // Libraries log every step of their connections at FINE.
        root.setLevel(level.intValue() < Level.INFO.intValue() ? Level.INFO : level);
        Log.LOGGER.setLevel(level);
    }

    @Override
    public String format(LogRecord line) {
        return json ? asJson(line) : asText(line);
    }

    private String asText(LogRecord line) {
        String about = about(line) == null ? "" : " (uid " + oneLine(about(line).uid()) + ")";
        String text =
                "%s %s %s%s%n"
                        .formatted(
                                TIME.format(line.getInstant()),
                                nameOf(line.getLevel()).toUpperCase(Locale.ROOT),
                                oneLine(message(line)),
                                about);
        return line.getThrown() == null || !isOurs(line) ? text : text + trace(line.getThrown());
    }

    private String asJson(LogRecord line) {
        ObjectNode object = JsonNodeFactory.instance.objectNode();
        object.put("time", TIME.format(line.getInstant()));
        object.put("level", nameOf(line.getLevel()));
        object.put("message", message(line));
        if (about(line) != null) {
            object.put("uid", about(line).uid());
            object.put("policy", about(line).policy());
        }
        if (line.getThrown() != null && isOurs(line)) {
            object.put("exception", trace(line.getThrown()));
        }
        return Json.quoted(object) + System.lineSeparator();
    }

    private String message(LogRecord line) {
        String text = about(line) == null ? formatMessage(line) : line.getMessage();
        return line.getThrown() == null || isOurs(line) ? text : text + ": " + line.getThrown();
    }

    /**
     * Only exceptions of policies are logged with their trace. Peers can cause exceptions in
     * libraries, and could fill the log with traces.
     */
    private static boolean isOurs(LogRecord line) {
        String name = line.getLoggerName();
        return name == null || !name.startsWith("io.grpc.");
    }

    private static Log.About about(LogRecord line) {
        Object[] parameters = line.getParameters();
        return parameters != null
                        && parameters.length == 1
                        && parameters[0] instanceof Log.About about
                ? about
                : null;
    }

    private static String nameOf(Level level) {
        if (level.intValue() >= Level.SEVERE.intValue()) {
            return "error";
        }
        if (level.intValue() >= Level.WARNING.intValue()) {
            return "warning";
        }
        return level.intValue() >= Level.INFO.intValue() ? "info" : "debug";
    }

    /** Escapes line breaks: a uid, which a client may choose, must not look like another line. */
    private static String oneLine(String message) {
        return message.replace("\r", "\\r").replace("\n", "\\n");
    }

    private static String trace(Throwable thrown) {
        StringWriter text = new StringWriter();
        thrown.printStackTrace(new PrintWriter(text, true));
        return text.toString();
    }
}
