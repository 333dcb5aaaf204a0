package dev.admissiongateway.samples;

/**
 * Globs as the shell and Python's fnmatch have them: {@code *} is any text, slashes too; {@code ?}
 * one character; {@code [a-c]} one of these; {@code [!a-c]} one that is none of these; a {@code [}
 * without its {@code ]} is itself. Upper and lower case differ.
 *
 * <p>A star that turns out to have taken too little takes one character more, and only the last
 * star has to be tried again: so time grows with the text times the glob, and never beyond.
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

    /** Where the set that begins at a place ends, at its bracket; -1: it is no set. */
    private int endOfSet(int at) {
        if (glob[at] != '[') {
            return -1;
        }
        int end = at + 1;
        if (end < glob.length && glob[end] == '!') {
            end++;
        }
        if (end < glob.length && glob[end] == ']') { // the first one belongs to the set
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
