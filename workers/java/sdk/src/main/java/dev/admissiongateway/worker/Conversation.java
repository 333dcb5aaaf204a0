package dev.admissiongateway.worker;

import admission.worker.v1.WorkerOuterClass.PolicyCall;
import admission.worker.v1.WorkerOuterClass.Outcome;
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
 * One {@code ReviewStream}: many calls over one connection, each answered as soon as it is known.
 *
 * <p>The rules:
 *
 * <ul>
 *   <li>An id is open from its call until its outcome is written. Each open id gets exactly one
 *       outcome, in any order: a verdict, or a failure when its time is over, its document is not
 *       there, or the worker is full. A cancelled one gets none.
 *   <li>An id that comes again while it is open is two questions with one name: the first is
 *       dropped and a failure is the answer to both, since a verdict could be taken for the
 *       other's.
 *   <li>Calls are worked on in the policies' threads, and so an outcome waits for no other one.
 *       Everything that is known when the stream is written travels in one message, up to a size;
 *       it is written when nothing is open any more, or a moment later ({@link Moment}).
 *   <li>A gateway that does not read its answers is not read either: what is not written is
 *       bounded.
 *   <li>When the gateway half-closes, what is open is answered, and the stream ends. When the
 *       worker is told to stop, it also ends when nothing is open and nothing has come for a while.
 *       When the stream breaks, all that is open is cancelled.
 * </ul>
 *
 * <p>gRPC calls one method of the listener at a time; outcomes and timeouts come in other threads.
 * So all that changes is guarded by this object, and the call is only written by {@link #write}, of
 * which one runs at a time.
 */
final class Conversation extends ServerCall.Listener<Methods.Received<ReviewStreamRequest>> {
    private final Service service;
    private final ServerCall<Methods.Received<ReviewStreamRequest>, ReviewStreamResponse> call;
    private final Context context = Context.current();
    private final Runnable stop = this::leave;

    private final Map<Long, OpenCall> open = new HashMap<>();
    private final Outbox outbox;
    private final Moment moment;
    private boolean halfClosed;
    private boolean stopping;
    private boolean ended;
    private boolean unread;
    private boolean writing;
    private boolean taking;
    private long latest = System.nanoTime();

    /** An open call. It holds one place in flight until its work has ended. */
    private record OpenCall(long id, PolicyCall call, Context.CancellableContext context) {}

    Conversation(
            Service service,
            ServerCall<Methods.Received<ReviewStreamRequest>, ReviewStreamResponse> call) {
        this.service = service;
        this.call = call;
        this.outbox = new Outbox(service.limits());
        this.moment = new Moment(service.clock(), this::gathered);
    }

    void begin() {
        service.traffic().opened();
        call.sendHeaders(new Metadata());
        call.request(1);
        service.stopping().tell(stop);
    }

    // ------------------------------------------------------------------------------------------ in

    @Override
    public void onMessage(Methods.Received<ReviewStreamRequest> received) {
        long arrived = System.nanoTime();
        if (received.message() == null) {
            refuse("not a ReviewStreamRequest: " + received.mistake());
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
                                "an item without call or cancel was ignored (id "
                                        + item.getId()
                                        + ")");
            }
        }
        synchronized (this) {
            taking = false;
            unread = outbox.isFull();
            if (!unread && !ended) {
                call.request(1);
            }
        }
        schedule();
    }

    private void take(long id, PolicyCall policyCall, List<ByteString> documents, long arrived) {
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
        if (policyCall.hasDocument()) {
            document = policyCall.getDocument();
        } else if (policyCall.hasDocumentIndex()) {
            // The contract's is unsigned: beyond 2^31 it is negative here.
            if (Integer.compareUnsigned(policyCall.getDocumentIndex(), documents.size()) >= 0) {
                String index = Integer.toUnsignedString(policyCall.getDocumentIndex());
                answer(
                        id,
                        "document_index is "
                                + index
                                + ", and its message has "
                                + documents.size()
                                + " documents");
                return;
            }
            document = documents.get(policyCall.getDocumentIndex());
        }
        if (!service.inFlight().enter()) {
            answer(id, service.inFlight().refusal());
            return;
        }
        OpenCall opened = new OpenCall(id, policyCall, contextOf(policyCall, arrived));
        synchronized (this) {
            if (ended) {
                service.inFlight().leave();
                return;
            }
            open.put(id, opened);
        }
        opened.context()
                .addListener(gone -> expire(opened, gone.cancellationCause()), Runnable::run);
        Judging.Question question = new Judging.Question(policyCall, document, policyCall.getTraceparent());
        service.judging().begin(question, opened.context(), outcome -> end(opened, outcome));
    }

    /** "How long the gateway waits for this outcome, counted from the message's arrival." */
    private Context.CancellableContext contextOf(PolicyCall policyCall, long arrived) {
        if (!policyCall.hasTimeout()) {
            return context.withCancellation();
        }
        long nanos = Timeouts.nanos(policyCall.getTimeout()) - (System.nanoTime() - arrived);
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

    private void end(OpenCall policyCall, Outcome outcome) {
        service.inFlight().leave();
        Throwable cause = policyCall.context().cancellationCause();
        synchronized (this) {
            if (!close(policyCall)) {
                return;
            }
            if (outcome != null) {
                outbox.put(policyCall.id(), outcome);
            } else if (cause instanceof TimeoutException) {
                outbox.put(policyCall.id(), timedOut(policyCall.call()));
            } else {
                String message = "policy " + policyCall.call().getPolicy() + " was cancelled";
                outbox.put(policyCall.id(), Outcomes.failure(message, versionOf(policyCall.call())));
            }
        }
        policyCall.context().cancel(null);
        schedule();
    }

    /** The call's time is over: that is its outcome, whenever the work ends. */
    private void expire(OpenCall policyCall, Throwable cause) {
        if (cause instanceof TimeoutException) {
            synchronized (this) {
                if (!close(policyCall)) {
                    return;
                }
                outbox.put(policyCall.id(), timedOut(policyCall.call()));
            }
            schedule();
        }
    }

    /** The call is open no longer; false: it was not. */
    private boolean close(OpenCall policyCall) {
        boolean removed = open.remove(policyCall.id(), policyCall);
        moment.open(open.size());
        return removed;
    }

    private Outcome timedOut(PolicyCall policyCall) {
        String seconds = Timeouts.seconds(policyCall.getTimeout());
        String message =
                "policy "
                        + policyCall.getPolicy()
                        + ": no answer within the call's timeout of "
                        + seconds
                        + " s";
        return Outcomes.failure(message, versionOf(policyCall));
    }

    private String versionOf(PolicyCall policyCall) {
        Policy policy = service.judging().policies().get(policyCall.getPolicy());
        return policy == null
                ? service.description().getVersion()
                : service.judging().versionOf(policy);
    }

    /** Nobody waits for this id any more. An unknown id is ignored. */
    private void drop(long id) {
        OpenCall dropped;
        synchronized (this) {
            outbox.remove(id);
            dropped = open.remove(id);
            moment.open(open.size());
        }
        if (dropped != null) {
            dropped.context().cancel(null);
        }
        schedule(); // it may have been the last one that the end waited for
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

    /** Writes soon, in a thread of the server's: what becomes known until then travels along. */
    private void schedule() {
        synchronized (this) {
            if (writing || taking || ended) {
                return;
            }
            if (moment.holds(outbox.size(), open.size())) {
                return;
            }
            writing = true;
        }
        service.executor().execute(this::write);
    }

    /** The moment is over: what is there is written, whatever else is open. */
    private void gathered() {
        synchronized (this) {
            moment.isOver(outbox.size(), open.size());
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
     * Writes one message, reads on if there is room again, ends if all is done. False: there is
     * nothing to write now.
     */
    private boolean writeOne() {
        if (ended) {
            return false;
        }
        ReviewStreamResponse batch = call.isReady() ? outbox.batch() : null;
        if (batch != null) {
            call.sendMessage(batch);
        }
        if (unread && !outbox.isFull()) {
            unread = false;
            call.request(1);
        }
        if (batch == null && isOver()) {
            ended = true;
            call.close(Status.OK, new Metadata());
        }
        return batch != null;
    }

    // ----------------------------------------------------------------------------------------- end

    private boolean isOver() {
        boolean noMore =
                halfClosed || (stopping && System.nanoTime() - latest >= Traffic.QUIET_NANOS);
        return !ended && noMore && open.isEmpty() && outbox.isEmpty();
    }

    /** The worker is told to stop: looks now and again whether the gateway has heard of it. */
    private void leave() {
        synchronized (this) {
            if (!stopping) {
                stopping = true;
                latest = System.nanoTime(); // from now on the gateway may hear of it
            }
            if (ended) {
                return;
            }
        }
        schedule();
        service.clock().schedule(this::leave, Traffic.QUIET_NANOS / 4, TimeUnit.NANOSECONDS);
    }

    private void refuse(String mistake) {
        synchronized (this) {
            if (ended) {
                return;
            }
            ended = true;
            call.close(Status.INVALID_ARGUMENT.withDescription(mistake), new Metadata());
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
        service.stopping().forget(stop);
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
            moment.end();
        }
        all.forEach(policyCall -> policyCall.context().cancel(null));
    }
}
