package dev.admissiongateway.worker;

import admission.worker.v1.WorkerOuterClass.Outcome;
import admission.worker.v1.WorkerOuterClass.PolicyCall;
import admission.worker.v1.WorkerOuterClass.ReviewStreamRequest;
import admission.worker.v1.WorkerOuterClass.ReviewStreamRequest.RequestItem;
import admission.worker.v1.WorkerOuterClass.ReviewStreamResponse;

import com.google.protobuf.ByteString;

import io.grpc.Context;
import io.grpc.Deadline;
import io.grpc.Metadata;
import io.grpc.ServerCall;
import io.grpc.Status;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * Serves one {@code ReviewStream}: many policy calls at the same time, each answered as soon as its
 * outcome is known.
 *
 * <p>The rules:
 *
 * <ul>
 *   <li>An id is open from its call until its outcome is written. Each open id gets exactly one
 *       outcome, in any order: a verdict, or a failure if its timeout is over, its document is
 *       missing, or the worker is at its limit. A cancelled id gets none.
 *   <li>If a call has the id of an open call, the first call is dropped and both get one failure:
 *       the gateway could take the verdict of one for that of the other.
 *   <li>Policies run in their own threads, so no outcome waits for another call. A message has all
 *       known outcomes, up to a size. It is written when no call is open, or after a {@link
 *       BatchDelay}.
 *   <li>Unwritten outcomes are limited: from a gateway that does not read, the worker reads no
 *       more.
 *   <li>After the gateway half-closes, the open calls are answered, and the stream ends. The stream
 *       of a stopping worker also ends when no call is open and no message has arrived for {@link
 *       Traffic#QUIET_NANOS}. If the stream breaks, all open calls are cancelled.
 * </ul>
 *
 * <p>gRPC calls one method of the listener at a time; outcomes and timeouts arrive in other
 * threads. So this object guards all mutable state, and only {@link #write}, of which one runs at a
 * time, writes to the stream.
 */
final class ReviewStream extends ServerCall.Listener<Methods.Received<ReviewStreamRequest>> {
    private final Service service;
    private final ServerCall<Methods.Received<ReviewStreamRequest>, ReviewStreamResponse> stream;
    private final Context context = Context.current();
    private final Runnable stop = this::leave;

    private final Map<Long, OpenCall> open = new HashMap<>();
    private final Outbox outbox;
    private final BatchDelay delay;
    private boolean halfClosed;
    private boolean stopping;
    private boolean ended;
    private boolean unread;
    private boolean writing;
    private boolean taking;
    private long latest = System.nanoTime();

    /** An open call. It counts as in flight until its policy has ended. */
    private record OpenCall(long id, PolicyCall call, Context.CancellableContext context) {}

    ReviewStream(
            Service service,
            ServerCall<Methods.Received<ReviewStreamRequest>, ReviewStreamResponse> stream) {
        this.service = service;
        this.stream = stream;
        this.outbox = new Outbox(service.limits());
        this.delay = new BatchDelay(service.clock(), this::delayIsOver);
    }

    void begin() {
        service.traffic().opened();
        stream.sendHeaders(new Metadata());
        stream.request(1);
        service.stopping().onStop(stop);
    }

    // ------------------------------------------------------------------------------------------ in

    @Override
    public void onMessage(Methods.Received<ReviewStreamRequest> received) {
        long arrived = System.nanoTime();
        if (received.message() == null) {
            refuse("not a ReviewStreamRequest: " + received.error());
            return;
        }
        synchronized (this) {
            latest = arrived;
            taking = true;
        }
        List<ByteString> documents = received.message().getDocumentsList();
        for (RequestItem item : received.message().getItemsList()) {
            switch (item.getItemCase()) {
                case CALL -> take(item.getId(), item.getCall(), documents, arrived);
                case CANCEL -> drop(item.getId());
                default -> // of a newer contract: "fields unknown to the receiver are ignored"
                        Log.debug(
                                "ignored an item without call or cancel (id " + item.getId() + ")");
            }
        }
        synchronized (this) {
            taking = false;
            unread = outbox.isFull();
            if (!unread && !ended) {
                stream.request(1);
            }
        }
        schedule();
    }

    private void take(long id, PolicyCall call, List<ByteString> documents, long arrived) {
        if (isOpen(id)) {
            drop(id);
            answer(
                    id,
                    "the stream has an open call with id "
                            + Long.toUnsignedString(id)
                            + " already: ids must be unique");
            return;
        }
        ByteString document = null;
        if (call.hasDocument()) {
            document = call.getDocument();
        } else if (call.hasDocumentIndex()) {
            // The contract's index is unsigned: above 2^31 it is negative here.
            if (Integer.compareUnsigned(call.getDocumentIndex(), documents.size()) >= 0) {
                String index = Integer.toUnsignedString(call.getDocumentIndex());
                answer(
                        id,
                        "document_index is "
                                + index
                                + ", and its message has "
                                + documents.size()
                                + " documents");
                return;
            }
            document = documents.get(call.getDocumentIndex());
        }
        if (!service.inFlight().enter()) {
            answer(id, service.inFlight().refusal());
            return;
        }
        OpenCall opened = new OpenCall(id, call, contextOf(call, arrived));
        synchronized (this) {
            if (ended) {
                service.inFlight().leave();
                return;
            }
            open.put(id, opened);
        }
        opened.context()
                .addListener(gone -> expire(opened, gone.cancellationCause()), Runnable::run);
        PolicyCaller.ReceivedCall received =
                new PolicyCaller.ReceivedCall(call, document);
        service.caller().begin(received, opened.context(), outcome -> end(opened, outcome));
    }

    /** "How long the gateway waits for this outcome, counted from the message's arrival." */
    private Context.CancellableContext contextOf(PolicyCall call, long arrived) {
        if (!call.hasTimeout()) {
            return context.withCancellation();
        }
        long nanos = Timeouts.nanos(call.getTimeout()) - (System.nanoTime() - arrived);
        return context.withDeadline(Deadline.after(nanos, TimeUnit.NANOSECONDS), service.clock());
    }

    private synchronized boolean isOpen(long id) {
        return open.containsKey(id) || outbox.holds(id);
    }

    @Override
    public void onHalfClose() {
        synchronized (this) {
            halfClosed = true;
        }
        schedule();
    }

    // ---------------------------------------------------------------------------------------- work

    private void end(OpenCall opened, Outcome outcome) {
        service.inFlight().leave();
        Throwable cause = opened.context().cancellationCause();
        synchronized (this) {
            if (!close(opened)) {
                return;
            }
            if (outcome != null) {
                outbox.put(opened.id(), outcome);
            } else if (cause instanceof TimeoutException) {
                outbox.put(opened.id(), timedOut(opened.call()));
            } else {
                String message = "policy " + opened.call().getPolicy() + " was cancelled";
                outbox.put(opened.id(), Outcomes.failure(message, versionOf(opened.call())));
            }
        }
        opened.context().cancel(null);
        schedule();
    }

    /** At its timeout the call gets a failure, whenever the policy ends. */
    private void expire(OpenCall opened, Throwable cause) {
        if (cause instanceof TimeoutException) {
            synchronized (this) {
                if (!close(opened)) {
                    return;
                }
                outbox.put(opened.id(), timedOut(opened.call()));
            }
            schedule();
        }
    }

    /** Removes the call from the open ones; false: it was not open. */
    private boolean close(OpenCall opened) {
        boolean removed = open.remove(opened.id(), opened);
        delay.decreaseTo(open.size());
        return removed;
    }

    private Outcome timedOut(PolicyCall call) {
        String seconds = Timeouts.seconds(call.getTimeout());
        String message =
                "policy "
                        + call.getPolicy()
                        + ": no answer within the call's timeout of "
                        + seconds
                        + " s";
        return Outcomes.failure(message, versionOf(call));
    }

    private String versionOf(PolicyCall call) {
        Policy policy = service.caller().policies().get(call.getPolicy());
        return policy == null
                ? service.description().getVersion()
                : service.caller().versionOf(policy);
    }

    /**
     * Cancels the call with this id, for which the gateway no longer waits. Ignores an unknown id.
     */
    private void drop(long id) {
        OpenCall dropped;
        synchronized (this) {
            outbox.remove(id);
            dropped = open.remove(id);
            delay.decreaseTo(open.size());
        }
        if (dropped != null) {
            dropped.context().cancel(null);
        }
        schedule(); // the stream may end now
    }

    private void answer(long id, String failure) {
        synchronized (this) {
            outbox.put(id, Outcomes.failure(failure, service.description().getVersion()));
        }
        schedule();
    }

    // ----------------------------------------------------------------------------------------- out

    @Override
    public void onReady() {
        schedule();
    }

    /**
     * Schedules a write in a thread of the server. Outcomes that are known until then join the
     * message.
     */
    private void schedule() {
        synchronized (this) {
            if (writing || taking || ended) {
                return;
            }
            if (delay.holds(outbox.size(), open.size())) {
                return;
            }
            writing = true;
        }
        service.executor().execute(this::write);
    }

    /** The batch delay is over: writes the known outcomes, even if calls are open. */
    private void delayIsOver() {
        synchronized (this) {
            delay.isOver(outbox.size(), open.size());
            if (writing || ended) {
                return;
            }
            writing = true;
        }
        service.executor().execute(this::write);
    }

    private void write() {
        boolean more;
        synchronized (this) {
            more = writeOne();
            writing = false;
        }
        if (more) {
            schedule();
        }
    }

    /**
     * Writes one message, continues to read if the outbox has room, and ends the stream if it is
     * complete. False: nothing was written.
     */
    private boolean writeOne() {
        if (ended) {
            return false;
        }
        ReviewStreamResponse batch = stream.isReady() ? outbox.batch() : null;
        if (batch != null) {
            stream.sendMessage(batch);
        }
        if (unread && !outbox.isFull()) {
            unread = false;
            stream.request(1);
        }
        if (batch == null && isOver()) {
            ended = true;
            stream.close(Status.OK, new Metadata());
        }
        return batch != null;
    }

    // ----------------------------------------------------------------------------------------- end

    private boolean isOver() {
        boolean noMore =
                halfClosed || (stopping && System.nanoTime() - latest >= Traffic.QUIET_NANOS);
        return !ended && noMore && open.isEmpty() && outbox.isEmpty();
    }

    /** Called when the worker stops, and then periodically, until the stream ends. */
    private void leave() {
        synchronized (this) {
            if (!stopping) {
                stopping = true;
                latest = System.nanoTime(); // from now on the gateway can learn of the stop
            }
            if (ended) {
                return;
            }
        }
        schedule();
        service.clock().schedule(this::leave, Traffic.QUIET_NANOS / 4, TimeUnit.NANOSECONDS);
    }

    private void refuse(String error) {
        synchronized (this) {
            if (ended) {
                return;
            }
            ended = true;
            stream.close(Status.INVALID_ARGUMENT.withDescription(error), new Metadata());
        }
        dropAll();
    }

    @Override
    public void onCancel() {
        over();
    }

    @Override
    public void onComplete() {
        over();
    }

    private void over() {
        service.stopping().remove(stop);
        service.traffic().closed();
        synchronized (this) {
            ended = true;
        }
        dropAll();
    }

    private void dropAll() {
        List<OpenCall> all;
        synchronized (this) {
            all = List.copyOf(open.values());
            open.clear();
            outbox.clear();
            delay.end();
        }
        all.forEach(opened -> opened.context().cancel(null));
    }
}
