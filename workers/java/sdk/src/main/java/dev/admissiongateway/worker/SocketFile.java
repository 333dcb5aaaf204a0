package dev.admissiongateway.worker;

import java.io.IOException;
import java.net.ConnectException;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;

/**
 * The file of a Unix socket. When a worker ends, Netty removes the file; a killed worker leaves it.
 * Such a stale file is removed; the socket of a process that still listens, or a file that is not a
 * socket, is not.
 */
final class SocketFile {
    private final Address address;
    private final Path path;

    SocketFile(Address address) {
        this.address = address;
        this.path = Path.of(address.path());
    }

    /**
     * Checks that the worker can listen on the path; removes the file of a socket on which no
     * process listens.
     *
     * @throws AddressException a process listens there, or the file is not a socket
     */
    void makeFree() throws AddressException {
        BasicFileAttributes found = attributes();
        if (found == null) {
            Path folder = path.toAbsolutePath().getParent();
            if (!Files.isDirectory(folder) || !Files.isWritable(folder)) {
                throw refused(folder + " is no directory that can be written to");
            }
            return;
        }
        if (!found
                .isOther()) { // neither file, directory nor link: a socket, or a device that takes
            // no connection
            throw refused("the file is no socket; remove it or choose another path");
        }
        if (isAnswered()) {
            throw refused("another process listens there; stop it or choose another path");
        }
        try {
            Files.deleteIfExists(path);
        } catch (IOException error) {
            throw refused("its old file cannot be removed: " + error.getClass().getSimpleName());
        }
    }

    private BasicFileAttributes attributes() throws AddressException {
        try {
            return Files.readAttributes(path, BasicFileAttributes.class, LinkOption.NOFOLLOW_LINKS);
        } catch (NoSuchFileException free) {
            return null;
        } catch (IOException error) {
            throw refused(error.getClass().getSimpleName());
        }
    }

    /** Whether a process listens. One that is too busy to accept, or denies access, counts. */
    private boolean isAnswered() {
        try (SocketChannel probe = SocketChannel.open(UnixDomainSocketAddress.of(path))) {
            return true;
        } catch (ConnectException refused) {
            return false;
        } catch (IOException error) {
            return Files.exists(path, LinkOption.NOFOLLOW_LINKS);
        }
    }

    private AddressException refused(String reason) {
        return new AddressException("cannot listen on " + address + ": " + reason);
    }
}
