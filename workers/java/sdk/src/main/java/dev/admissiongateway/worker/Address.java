package dev.admissiongateway.worker;

import java.nio.charset.StandardCharsets;
import java.util.regex.Pattern;

/**
 * The address on which a worker listens: {@code HOST:PORT}, {@code [::1]:PORT} (port 0: any free
 * port), {@code unix:PATH} or {@code unix:///ABSOLUTE}. A leading {@code dns:///} is ignored, so
 * that the target of a gRPC client is a valid address.
 *
 * @param path of a Unix socket; empty: the address is a host and a port
 * @param host a name or an IP address without brackets
 * @param port 0: any free port
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
     * Parses an address.
     *
     * @throws AddressException the address is invalid
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

    /** The same address with the actual port. */
    Address withPort(int found) {
        return new Address(path, host, found);
    }

    /** The form for gRPC clients. */
    @Override
    public String toString() {
        if (isSocket()) {
            return UNIX + path;
        }
        return (host.contains(":") ? "[" + host + "]:" : host + ":") + port;
    }
}
