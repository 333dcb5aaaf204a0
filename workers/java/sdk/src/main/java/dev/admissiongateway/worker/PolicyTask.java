package dev.admissiongateway.worker;

import admission.worker.v1.WorkerOuterClass.FailureReason;
import admission.worker.v1.WorkerOuterClass.Outcome;
import admission.worker.v1.WorkerOuterClass.PolicyCall;

import io.grpc.Context;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.Consumer;

/**
 * One policy call: it waits for a thread, runs the function, and ends with an outcome.
 *
 * <p>When the context is cancelled, because the gateway no longer waits, a function that has not
 * started never starts, a stage is cancelled, and a blocking function is interrupted. A plain
 * function continues: it takes microseconds. The task ends only when its function has ended, so
 * that the calls in flight are those that really run.
 */
final class PolicyTask implements Runnable {
    private enum State {
        WAITING,
        RUNNING,
        ENDED
    }

    private final PolicyCaller caller;
    private final Policy policy;
    private final PolicyCaller.ReceivedCall received;
    private final Context.CancellableContext context;
    private final Consumer<Outcome> ended;
    private final Context.CancellationListener stop = gone -> stop();

    private State state = State.WAITING;
    private Thread interruptible;
    private CompletableFuture<?> pending;
    private Tracing.Span span = Tracing.Span.NONE;

    PolicyTask(
            PolicyCaller caller,
            Policy policy,
            PolicyCaller.ReceivedCall received,
            Context.CancellableContext context,
            Consumer<Outcome> ended) {
        this.caller = caller;
        this.policy = policy;
        this.received = received;
        this.context = context;
        this.ended = ended;
    }

    /** Queues the task for a thread. */
    void begin(Executor threads) {
        context.addListener(stop, Runnable::run);
        try {
            threads.execute(this);
        } catch (RejectedExecutionException stopped) {
            end(failure(" was not called: the worker is stopping"));
        }
    }

    /** Runs the function, in a thread of the worker. */
    @Override
    public void run() {
        synchronized (this) {
            if (state != State.WAITING) {
                return;
            }
            state = State.RUNNING;
            interruptible = policy.style() == Policy.Style.BLOCKING ? Thread.currentThread() : null;
        }
        try {
            context.run(this::call);
        } finally {
            synchronized (this) {
                interruptible = null;
            }
            // A late interrupt must not affect the next function in this thread.
            Thread.interrupted();
        }
    }

    private void stop() {
        CompletableFuture<?> cancelled;
        synchronized (this) {
            if (interruptible != null) {
                interruptible.interrupt();
            }
            if (state == State.ENDED || (state == State.RUNNING && pending == null)) {
                return;
            }
            state = State.RUNNING; // so that it never starts
            cancelled = pending;
        }
        if (cancelled == null) {
            end(null);
        } else {
            cancelled.cancel(true);
        }
    }

    private void call() {
        PolicyCall call = received.call();
        try {
            Object settings = caller.settingsOf(policy, call);
            Request request = new Request(received.document(), call.getUid(), context);
            Tracing.Sent sent = new Tracing.Sent(call.getTraceparent(), call.getTracestate());
            span = caller.tracing().start(policy.name(), attributes(), sent);
            span.during(() -> invoke(request, settings));
        } catch (InvalidSettingsException error) {
            end(invalidSettings(error));
        } catch (InvalidDocumentException error) {
            end(failure(": " + error.getMessage()));
        } catch (Throwable error) { // out of memory or stack for the document or settings
            end(thrown(error));
        }
    }

    private void invoke(Request request, Object settings) {
        Object answer;
        try {
            answer = policy.invoke(request, settings);
        } catch (Throwable error) { // an Error of one policy must not end the worker
            end(thrown(error));
            return;
        }
        if (policy.style() == Policy.Style.LATER) {
            follow(answer);
        } else {
            end(answered(answer));
        }
    }

    private void follow(Object stage) {
        CompletableFuture<?> future;
        try {
            if (!(stage instanceof CompletionStage<?> promise)) {
                throw new InvalidAnswerException(
                        "returned " + Json.typeOf(stage) + ": must be a CompletionStage");
            }
            future = promise.toCompletableFuture();
        } catch (Throwable error) {
            end(thrown(error));
            return;
        }
        synchronized (this) {
            pending = future;
        }
        future.whenComplete(
                (answer, error) -> end(error == null ? answered(answer) : thrown(cause(error))));
        if (context.isCancelled()) { // before the stage existed
            future.cancel(true);
        }
    }

    private static Throwable cause(Throwable error) {
        return error instanceof CompletionException && error.getCause() != null
                ? error.getCause()
                : error;
    }

    private Outcome answered(Object answer) {
        try {
            Answer accepted = Outcomes.accepted(answer, policy.phase());
            if (accepted instanceof Failure failure) {
                Log.failure(
                        "policy " + policy.name() + " failed: " + failure.message(),
                        policy.name(),
                        uid(),
                        null);
            }
            return caller.fitting(Outcomes.of(accepted, caller.versionOf(policy)), policy, uid());
        } catch (Throwable error) { // for example, out of memory for the answer
            return thrown(error);
        }
    }

    /**
     * The outcome of an exception. It has the text of our own exceptions only, which hold no
     * values.
     */
    private Outcome thrown(Throwable error) {
        if (context.isCancelled()) { // a cancelled policy is expected to throw
            return null;
        }
        String type = error.getClass().getSimpleName();
        boolean ours =
                error instanceof InvalidAnswerException
                        || error instanceof InvalidDocumentException;
        String what = ours ? type + ": " + error.getMessage() : type + "; see the worker's log";
        Log.failure("policy " + policy.name() + " threw", policy.name(), uid(), error);
        return failure(" threw " + what);
    }

    private Outcome invalidSettings(InvalidSettingsException error) {
        String message = "settings of policy " + policy.name() + ": " + error.getMessage();
        Log.failure(message, policy.name(), uid(), null);
        return Outcomes.failure(
                message, FailureReason.FAILURE_REASON_INVALID_SETTINGS, caller.versionOf(policy));
    }

    private Outcome failure(String what) {
        return Outcomes.failure("policy " + policy.name() + what, caller.versionOf(policy));
    }

    private String uid() {
        return received.call().getUid();
    }

    private Map<String, String> attributes() {
        Map<String, String> attributes = new LinkedHashMap<>();
        attributes.put("admission.policy", policy.name());
        attributes.put("admission.uid", uid());
        return attributes;
    }

    private void end(Outcome outcome) {
        synchronized (this) {
            if (state == State.ENDED) {
                return;
            }
            state = State.ENDED;
        }
        context.removeListener(stop);
        span.end(outcome == null ? "cancelled" : verdictOf(outcome));
        ended.accept(outcome);
    }

    private static String verdictOf(Outcome outcome) {
        return switch (outcome.getVerdictCase()) {
            case ALLOW -> "allow";
            case DENY -> "deny";
            default -> "failure";
        };
    }
}
