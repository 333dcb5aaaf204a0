package dev.admissiongateway.worker;

import com.google.protobuf.ByteString;

import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Caches converted settings by policy and text. It removes the least recently used, and is limited
 * in number and in the size of texts.
 *
 * <p>Equal settings have equal bytes, and concurrent calls wait for one conversion. Invalid
 * settings are not cached.
 */
final class SettingsCache {
    private final Limits limits;
    private final Map<Key, Kept> kept = new LinkedHashMap<>(16, 0.75f, true);
    private long bytes;

    private record Key(String policy, ByteString text) {}

    SettingsCache(Limits limits) {
        this.limits = limits;
    }

    /** Like {@link SettingsType#read}, without warnings. Converts settings that are not cached. */
    Object read(String policy, SettingsType<?> type, ByteString text)
            throws InvalidSettingsException {
        Key key = new Key(policy, text);
        Kept found = place(key);
        try {
            return found.read(type, text);
        } catch (InvalidSettingsException error) {
            forget(key, found);
            throw error;
        }
    }

    private synchronized Kept place(Key key) {
        Kept found = kept.get(key);
        if (found == null) {
            found = new Kept();
            kept.put(key, found);
            bytes += key.text.size();
            makeRoom();
        }
        return found;
    }

    private synchronized void forget(Key key, Kept found) {
        if (kept.remove(key, found)) {
            bytes -= key.text.size();
        }
    }

    private void makeRoom() {
        Iterator<Key> oldest = kept.keySet().iterator();
        while (kept.size() > limits.settingsKept() || bytes > limits.settingsKeptBytes()) {
            bytes -= oldest.next().text.size();
            oldest.remove();
        }
    }

    /** One text: the first caller converts it; others wait for it, not for other texts. */
    private static final class Kept {
        private Object settings;

        synchronized Object read(SettingsType<?> type, ByteString text)
                throws InvalidSettingsException {
            if (settings == null) {
                settings = type.read(text).settings();
            }
            return settings;
        }
    }
}
