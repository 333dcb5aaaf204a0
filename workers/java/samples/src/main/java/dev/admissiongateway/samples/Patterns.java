package dev.admissiongateway.samples;

import com.google.re2j.Pattern;
import com.google.re2j.PatternSyntaxException;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Regular expressions of RE2, whose matches take time in proportion to the text. Those of the JDK
 * backtrack: {@code (a+)+} against thirty letters blocks a thread for minutes.
 */
final class Patterns {
    /** The most recently used patterns: a few for each policy of a configuration. */
    private static final int KEPT = 128;

    private static final Map<String, Pattern> COMPILED =
            Collections.synchronizedMap(
                    new LinkedHashMap<>(16, 0.75f, true) {
                        private static final long serialVersionUID = 1;

                        @Override
                        protected boolean removeEldestEntry(Map.Entry<String, Pattern> eldest) {
                            return size() > KEPT;
                        }
                    });

    private Patterns() {}

    /** Whether a text is a regular expression. */
    static boolean isPattern(String text) {
        try {
            compiled(text);
            return true;
        } catch (PatternSyntaxException error) {
            return false;
        }
    }

    /** Whether the whole value matches. */
    static boolean matches(String pattern, String value) {
        return compiled(pattern).matches(value);
    }

    private static Pattern compiled(String text) {
        return COMPILED.computeIfAbsent(text, Pattern::compile);
    }
}
