package dev.admissiongateway.samples;

/**
 * Globs as in the shell and in Python's fnmatch: {@code *} matches any text, slashes included,
 * {@code ?} any character, {@code [a-c]} one of these and {@code [!a-c]} any other; a {@code [}
 * without {@code ]} matches itself. Globs are case-sensitive.
 *
 * <p>A match backtracks to the last star only, so its time is limited by the product of the
 * lengths.
 */
final class Globs {
    private final int[] glob;
    private final int[] text;

    private Globs(int[] glob, int[] text) {
        this.glob = glob;
        this.text = text;
    }

    /** Whether the whole text matches. */
    static boolean matches(String glob, String text) {
        return new Globs(glob.codePoints().toArray(), text.codePoints().toArray()).matches();
    }

    private boolean matches() {
        int at = 0;
        int read = 0;
        int star = -1;
        int taken = 0;
        while (read < text.length) {
            if (at < glob.length && glob[at] == '*') {
                star = at++;
                taken = read;
            } else if (at < glob.length && fits(at, text[read])) {
                at = after(at);
                read++;
            } else if (star >= 0) {
                at = star + 1;
                read = ++taken;
            } else {
                return false;
            }
        }
        while (at < glob.length && glob[at] == '*') {
            at++;
        }
        return at == glob.length;
    }

    /** The index of the bracket that ends the set at an index; -1: none. */
    private int endOfSet(int at) {
        if (glob[at] != '[') {
            return -1;
        }
        int end = at + 1;
        if (end < glob.length && glob[end] == '!') {
            end++;
        }
        if (end < glob.length && glob[end] == ']') { // the first one is a member
            end++;
        }
        while (end < glob.length && glob[end] != ']') {
            end++;
        }
        return end < glob.length ? end : -1;
    }

    private int after(int at) {
        int end = endOfSet(at);
        return end < 0 ? at + 1 : end + 1;
    }

    private boolean fits(int at, int character) {
        int end = endOfSet(at);
        if (end < 0) {
            return glob[at] == '?' || glob[at] == character;
        }
        boolean without = glob[at + 1] == '!';
        return isIn(without ? at + 2 : at + 1, end, character) != without;
    }

    private boolean isIn(int begin, int end, int character) {
        for (int index = begin; index < end; index++) {
            if (index + 2 < end && glob[index + 1] == '-') {
                if (glob[index] <= character && character <= glob[index + 2]) {
                    return true;
                }
                index += 2;
            } else if (glob[index] == character) {
                return true;
            }
        }
        return false;
    }
}
