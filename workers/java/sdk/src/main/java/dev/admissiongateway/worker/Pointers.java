package dev.admissiongateway.worker;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.regex.Pattern;

/**
 * JSON Pointers (RFC 6901), which name fields in claims, patches and errors.
 *
 * <p>"The token "~" is encoded as "~0" and "/" as "~1"": RFC 6901, section 3. In claims a token
 * {@code *} matches every element or member, so a member named {@code *} cannot be claimed alone.
 */
public final class Pointers {
    /**
     * The most pointers in one claim, and tokens in one pointer: the gateway accepts no more, and
     * no request is nested deeper.
     */
    static final int MOST = 256;

    /** The length to which an error shortens a long pointer. */
    private static final int SHOWN = 80;

    private static final Pattern TOKEN = Pattern.compile("(?:[^~/]|~[01])*+", Pattern.DOTALL);

    private Pointers() {}

    /**
     * The JSON Pointer of these keys and indexes, with escapes: {@code pointer("metadata",
     * "labels", "a/b")} is {@code /metadata/labels/a~1b}.
     */
    public static String pointer(Object... tokens) {
        StringBuilder made = new StringBuilder();
        for (Object token : tokens) {
            made.append('/').append(String.valueOf(token).replace("~", "~0").replace("/", "~1"));
        }
        return made.toString();
    }

    /** The tokens of a valid pointer, without escapes: {@code /a~1b/0} is {@code [a/b, 0]}. */
    static List<String> tokens(String pointer) {
        List<String> found = new ArrayList<>();
        for (String token : pointer.substring(1).split("/", -1)) {
            found.add(token.replace("~1", "/").replace("~0", "~"));
        }
        return found;
    }

    /**
     * Validates claimed pointers and removes duplicates: authors compose claims from lists, and the
     * gateway rejects duplicates.
     *
     * @param what begins the error message
     * @throws IllegalArgumentException a pointer is invalid or empty, or there are too many
     */
    static List<String> checked(List<String> claims, String what) {
        LinkedHashSet<String> pointers = new LinkedHashSet<>();
        for (String claim : claims) {
            check(claim, what);
            pointers.add(claim);
        }
        if (pointers.size() > MOST) {
            throw new IllegalArgumentException(
                    what
                            + ": at most "
                            + MOST
                            + " pointers, there are "
                            + pointers.size()
                            + "; claim what holds several of them");
        }
        return List.copyOf(pointers);
    }

    private static void check(String claim, String what) {
        if (claim == null || !claim.startsWith("/") || !isEscaped(claim)) {
            String hint = "".equals(claim) ? "; everything is spelt Claim.everything()" : "";
            throw new IllegalArgumentException(
                    what
                            + ": "
                            + Json.quoted(claim)
                            + " is no JSON Pointer such as \"/object/metadata/labels\""
                            + hint);
        }
        if (claim.chars().filter(character -> character == '/').count() > MOST) {
            String shown = claim.substring(0, Math.min(SHOWN, claim.length()));
            throw new IllegalArgumentException(
                    what
                            + ": "
                            + Json.quoted(shown)
                            + "... has more than "
                            + MOST
                            + " segments, and no request is nested so deep");
        }
    }

    private static boolean isEscaped(String claim) {
        for (String token : claim.substring(1).split("/", -1)) {
            if (!TOKEN.matcher(token).matches()) {
                return false;
            }
        }
        return true;
    }
}
