package dev.admissiongateway.worker;

import com.google.protobuf.ByteString;

import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The settings that were converted last, by policy and text, bounded in number and in the size of
 * their text.
 *
 * <p>Equal settings are equal bytes, so each text is converted once, whoever calls at the same time.
 * What does not convert is not kept: it is not worth a place, and says so again each time.
 */
final class KeptSettings {
    private final Limits limits;
    private final Map<Key, Kept> kept = new LinkedHashMap<>(16, 0.75f, true);
    private long bytes;

    private record Key(String policy, ByteString text) {}

    KeptSettings(Limits limits) {
        this.limits = limits;
    }

    /** As {@link SettingsType#read}, without the warnings; converted only when it is not kept. */
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

    /** One text: who comes first converts, the others wait for it and not for other texts. */
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
