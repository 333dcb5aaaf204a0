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
 * The file of a Unix socket. A worker that ends takes its file along (Netty removes it with the
 * socket); one that was killed leaves it behind: that is taken over. One that somebody listens on
 * is not, and neither is a file that is no socket.
 */
final class SocketFile {
    private final Address address;
    private final Path path;

    SocketFile(Address address) {
        this.address = address;
        this.path = Path.of(address.path());
    }

    /**
     * Sees that the address can be listened on; removes the file of a socket that nobody listens
     * on.
     *
     * @throws AddressException somebody listens there, or it is not ours to take
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

    /** Whoever is too busy to answer, or forbids it, is somebody. */
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
