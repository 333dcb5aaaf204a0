package dev.admissiongateway.worker;

import java.nio.charset.StandardCharsets;
import java.util.regex.Pattern;

/**
 * Where a worker listens, as operators write it: {@code HOST:PORT}, {@code [::1]:PORT} (port 0:
 * any), {@code unix:PATH} or {@code unix:///ABSOLUTE}; a leading {@code dns:///}, which gRPC
 * clients need, is taken off, so that a client's target can be given as it is.
 *
 * @param path of a Unix socket; empty: it is none
 * @param host a name or an IP address without brackets
 * @param port 0: any that is free
 */
record Address(String path, String host, int port) {
    /**
     * The longest path of a Unix socket on Linux: {@code sun_path} has 108 bytes, the last of which
     * is NUL (unix(7)).
     */
    static final int SUN_PATH_BYTES = 107;

    private static final int LAST_PORT = 65535;
    private static final Pattern PORT = Pattern.compile("[0-9]{1,5}");
    private static final String UNIX = "unix:";
    private static final String DNS = "dns:///";

    /**
     * Reads an address.
     *
     * @throws AddressException it is none
     */
    static Address parse(String text) throws AddressException {
        return text.startsWith(UNIX) ? socket(text) : hostAndPort(text);
    }

    private static Address socket(String text) throws AddressException {
        String path = text.substring(UNIX.length());
        if (path.startsWith("//")) {
            path = path.substring(2);
            if (!path.startsWith("/")) {
                throw new AddressException(
                        Json.quoted(text)
                                + ": unix:// must be followed by an absolute path, as in"
                                + " unix:///run/worker.sock");
            }
        }
        int size = path.getBytes(StandardCharsets.UTF_8).length;
        if (size < 1 || size > SUN_PATH_BYTES || path.indexOf('\0') >= 0) {
            throw new AddressException(
                    Json.quoted(text)
                            + ": the path of a Unix socket has 1 to "
                            + SUN_PATH_BYTES
                            + " bytes, this one has "
                            + size);
        }
        return new Address(path, "", 0);
    }

    private static Address hostAndPort(String text) throws AddressException {
        String bare = text.startsWith(DNS) ? text.substring(DNS.length()) : text;
        int colon = bare.lastIndexOf(':');
        String host = colon < 0 ? "" : bare.substring(0, colon);
        String port = bare.substring(colon + 1);
        if (host.startsWith("[") && host.endsWith("]")) {
            host = host.substring(1, host.length() - 1);
        } else if (host.contains(":")) {
            throw new AddressException(
                    Json.quoted(text)
                            + ": an IPv6 address is written in brackets, as in [::1]:50051");
        }
        boolean sound = !host.isEmpty() && !host.contains("/") && PORT.matcher(port).matches();
        if (!sound || Integer.parseInt(port) > LAST_PORT) {
            throw new AddressException(
                    Json.quoted(text)
                            + ": must be HOST:PORT, [IPv6]:PORT or unix:PATH, such as"
                            + " 127.0.0.1:50051");
        }
        return new Address("", host, Integer.parseInt(port));
    }

    boolean isSocket() {
        return !path.isEmpty();
    }

    /** The same with the port that was found. */
    Address withPort(int found) {
        return new Address(path, host, found);
    }

    /** As a gRPC client writes it. */
    @Override
    public String toString() {
        if (isSocket()) {
            return UNIX + path;
        }
        return (host.contains(":") ? "[" + host + "]:" : host + ":") + port;
    }
}
