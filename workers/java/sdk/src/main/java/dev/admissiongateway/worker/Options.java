package dev.admissiongateway.worker;

import java.math.BigDecimal;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.logging.Level;

/**
 * The flags of a worker's command, which are also environment variables: {@code --in-flight} is
 * {@code ADMISSION_WORKER_IN_FLIGHT}. The flag takes precedence.
 */
record Options(
        String listen,
        Tls tls,
        boolean json,
        Level level,
        Limits limits,
        boolean conformance,
        boolean supervised) {
    private static final String PREFIX = "ADMISSION_WORKER_";

    /** The longest grace period: a day. A longer one is an error. */
    private static final BigDecimal LONGEST_GRACE_SECONDS = BigDecimal.valueOf(86_400);

    /** An invalid flag or variable. The message is one line. */
    static final class WrongException extends Exception {
        private static final long serialVersionUID = 1;

        WrongException(String message) {
            super(message);
        }
    }

    /** The flags. */
    enum Flag {
        LISTEN("127.0.0.1:50051", "where to serve: HOST:PORT, unix:PATH or unix:///ABSOLUTE"),
        TLS_CERT("", "a PEM file: serve TLS with this certificate; read again when it changes"),
        TLS_KEY("", "a PEM file: the certificate's private key"),
        CLIENT_CA("", "a PEM file: serve only clients with a certificate of these CAs"),
        LOG_FORMAT("text", "text or json"),
        LOG_LEVEL("info", "debug, info, warning or error"),
        IN_FLIGHT(Limits.defaults().inFlight(), "policy calls at the same time; more are rejected"),
        MESSAGE_BYTES(
                Limits.defaults().messageBytes(), "the largest gRPC message, received or sent"),
        THREADS(Limits.defaults().threads(), "blocking policies that run at the same time"),
        SETTINGS_KEPT(Limits.defaults().settingsKept(), "cached settings"),
        GRACE_PERIOD(
                Limits.defaults().gracePeriod().toSeconds(),
                "seconds for open calls after a signal to stop"),
        CONFORMANCE("false", "adds the probe policies of the conformance kit; not for production");

        private final String byDefault;
        private final String text;

        Flag(Object byDefault, String text) {
            this.byDefault = byDefault.toString();
            this.text = text;
        }

        String flag() {
            return "--" + name().toLowerCase(Locale.ROOT).replace('_', '-');
        }

        String variable() {
            return PREFIX + name();
        }

        static Flag named(String flag) throws WrongException {
            for (Flag known : values()) {
                if (known.flag().equals(flag)) {
                    return known;
                }
            }
            throw new WrongException(
                    "unknown flag " + Json.quoted(flag) + "; --help lists all flags");
        }
    }

    /**
     * Parses flags and variables.
     *
     * @throws WrongException an unknown flag, or an invalid value
     */
    static Options read(String[] arguments, Map<String, String> environment) throws WrongException {
        Given given = new Given(given(arguments), environment);
        Limits limits =
                new Limits(
                        given.count(Flag.IN_FLIGHT),
                        given.count(Flag.MESSAGE_BYTES),
                        Limits.defaults().batchBytes(),
                        given.count(Flag.THREADS),
                        given.count(Flag.SETTINGS_KEPT),
                        Limits.defaults().settingsKeptBytes(),
                        given.seconds(Flag.GRACE_PERIOD));
        return new Options(
                given.address(),
                given.tls(),
                given.choice(Flag.LOG_FORMAT, Map.of("text", false, "json", true)),
                given.choice(Flag.LOG_LEVEL, LogLines.LEVELS),
                limits,
                given.choice(
                        Flag.CONFORMANCE,
                        Map.of("true", true, "1", true, "false", false, "0", false)),
                "1".equals(environment.get(PREFIX + "SUPERVISED")));
    }

    /** The text of {@code --help}. */
    static String help(Worker worker) {
        StringBuilder text = new StringBuilder();
        text.append(
                "Serves the policies of worker %s %s: %s%n%n"
                        .formatted(
                                worker.name(),
                                worker.version(),
                                String.join(", ", worker.policies().keySet())));
        for (Flag flag : Flag.values()) {
            String byDefault = flag.byDefault.isEmpty() ? "" : " (default " + flag.byDefault + ")";
            text.append(
                    "  %-16s %s%s%n  %-16s or %s%n"
                            .formatted(flag.flag(), flag.text, byDefault, "", flag.variable()));
        }
        return text.toString();
    }

    private static Map<Flag, String> given(String[] arguments) throws WrongException {
        Map<Flag, String> given = new HashMap<>();
        for (int index = 0; index < arguments.length; index++) {
            String argument = arguments[index];
            int equals = argument.indexOf('=');
            Flag flag = Flag.named(equals < 0 ? argument : argument.substring(0, equals));
            if (equals >= 0) {
                given.put(flag, argument.substring(equals + 1));
            } else if (flag == Flag.CONFORMANCE) {
                given.put(flag, "true");
            } else if (++index < arguments.length) {
                given.put(flag, arguments[index]);
            } else {
                throw new WrongException(flag.flag() + " needs a value");
            }
        }
        return given;
    }

    private record Given(Map<Flag, String> flags, Map<String, String> environment) {
        String text(Flag flag) {
            String variable = environment.getOrDefault(flag.variable(), "");
            return flags.getOrDefault(flag, variable.isEmpty() ? flag.byDefault : variable);
        }

        /** The flag or variable that set the value, for errors. */
        String nameOf(Flag flag) {
            return flags.containsKey(flag) ? flag.flag() : flag.variable();
        }

        String address() throws WrongException {
            try {
                Address.parse(text(Flag.LISTEN));
                return text(Flag.LISTEN);
            } catch (AddressException error) {
                throw new WrongException(nameOf(Flag.LISTEN) + ": " + error.getMessage());
            }
        }

        Tls tls() throws WrongException {
            boolean cert = !text(Flag.TLS_CERT).isEmpty();
            boolean key = !text(Flag.TLS_KEY).isEmpty();
            boolean authorities = !text(Flag.CLIENT_CA).isEmpty();
            if (cert != key) {
                throw new WrongException("--tls-cert and --tls-key need each other");
            }
            if (authorities && !cert) {
                throw new WrongException("--client-ca needs --tls-cert and --tls-key");
            }
            if (!cert) {
                return null;
            }
            return new Tls(
                    path(Flag.TLS_CERT),
                    path(Flag.TLS_KEY),
                    authorities ? path(Flag.CLIENT_CA) : null);
        }

        Path path(Flag flag) {
            return Path.of(text(flag));
        }

        <T> T choice(Flag flag, Map<String, T> known) throws WrongException {
            T chosen = known.get(text(flag));
            if (chosen == null) {
                throw wrong(
                        flag,
                        "one of " + String.join(", ", known.keySet().stream().sorted().toList()));
            }
            return chosen;
        }

        int count(Flag flag) throws WrongException {
            try {
                int count = Integer.parseInt(text(flag));
                if (count >= 1) {
                    return count;
                }
            } catch (NumberFormatException none) {
                // as below
            }
            throw wrong(flag, "a whole number from 1 to " + Integer.MAX_VALUE);
        }

        Duration seconds(Flag flag) throws WrongException {
            try {
                BigDecimal seconds = new BigDecimal(text(flag));
                if (seconds.signum() >= 0 && seconds.compareTo(LONGEST_GRACE_SECONDS) <= 0) {
                    return Duration.ofNanos(seconds.movePointRight(9).longValue());
                }
            } catch (NumberFormatException none) {
                // as below
            }
            throw wrong(flag, "seconds, from 0 to " + LONGEST_GRACE_SECONDS);
        }

        private WrongException wrong(Flag flag, String wanted) {
            return new WrongException(
                    nameOf(flag) + ": must be " + wanted + ", is " + Json.quoted(text(flag)));
        }
    }
}
