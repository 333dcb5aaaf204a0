package dev.admissiongateway.worker;

import admission.worker.v1.WorkerOuterClass.Outcome;
import admission.worker.v1.WorkerOuterClass.ReviewStreamResponse;

import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;

/** Queues the outcomes of one stream that are not yet written, the oldest first. */
final class Outbox {
    private final Limits limits;
    private final Map<Long, Outcome> outcomes = new LinkedHashMap<>();
    private long bytes;

    Outbox(Limits limits) {
        this.limits = limits;
    }

    void put(long id, Outcome outcome) {
        remove(id);
        outcomes.put(id, outcome);
        bytes += outcome.getSerializedSize();
    }

    void remove(long id) {
        Outcome removed = outcomes.remove(id);
        if (removed != null) {
            bytes -= removed.getSerializedSize();
        }
    }

    void clear() {
        outcomes.clear();
        bytes = 0;
    }

    boolean holds(long id) {
        return outcomes.containsKey(id);
    }

    int size() {
        return outcomes.size();
    }

    boolean isEmpty() {
        return outcomes.isEmpty();
    }

    /**
     * As many outcomes as calls may be in flight, or as many bytes as the largest message. A
     * gateway that sends more calls must read first.
     */
    boolean isFull() {
        return outcomes.size() >= limits.inFlight() || bytes >= limits.messageBytes();
    }

    /**
     * Removes and returns the oldest outcomes that fit into one message, at least one. null: the
     * outbox is empty.
     */
    ReviewStreamResponse batch() {
        if (outcomes.isEmpty()) {
            return null;
        }
        ReviewStreamResponse.Builder batch = ReviewStreamResponse.newBuilder();
        long room = limits.batchBytes();
        Iterator<Map.Entry<Long, Outcome>> oldest = outcomes.entrySet().iterator();
        while (oldest.hasNext()) {
            Map.Entry<Long, Outcome> next = oldest.next();
            int size = next.getValue().getSerializedSize();
            if (room < size && batch.getItemsCount() > 0) {
                break;
            }
            room -= size;
            bytes -= size;
            batch.addItemsBuilder().setId(next.getKey()).setOutcome(next.getValue());
            oldest.remove();
        }
        return batch.build();
    }
}
