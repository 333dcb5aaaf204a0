package dev.admissiongateway.worker;

import admission.worker.v1.WorkerOuterClass.PolicyCall;
import admission.worker.v1.WorkerOuterClass.FailureReason;
import admission.worker.v1.WorkerOuterClass.Outcome;

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
 * One call that is worked on: its policy's function, from the thread that it waits for to its
 * outcome.
 *
 * <p>When nobody waits for the outcome any more (the context is cancelled), a function that has not
 * begun never does; a stage is cancelled; a blocking function is interrupted. A plain one runs on:
 * it takes microseconds. The work has ended only when its function has, so whoever counts the work
 * counts what really runs.
 */
final class Work implements Runnable {
    private enum State {
        WAITING,
        RUNNING,
        ENDED
    }

    private final Judging judging;
    private final Policy policy;
    private final Judging.Question question;
    private final Context.CancellableContext context;
    private final Consumer<Outcome> ended;
    private final Context.CancellationListener stop = gone -> stop();

    private State state = State.WAITING;
    private Thread interruptible;
    private CompletableFuture<?> promised;
    private Tracing.Span span = Tracing.Span.NONE;

    Work(
            Judging judging,
            Policy policy,
            Judging.Question question,
            Context.CancellableContext context,
            Consumer<Outcome> ended) {
        this.judging = judging;
        this.policy = policy;
        this.question = question;
        this.context = context;
        this.ended = ended;
    }

    /** Waits for a thread. */
    void begin(Executor threads) {
        context.addListener(stop, Runnable::run);
        try {
            threads.execute(this);
        } catch (RejectedExecutionException stopped) {
            end(failure(" was not called: the worker is stopping"));
        }
    }

    /** Runs the function, in one of the worker's threads. */
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
            context.run(this::judge);
        } finally {
            synchronized (this) {
                interruptible = null;
            }
            // What came too late for this function must not interrupt the next one in the same
            // thread.
            Thread.interrupted();
        }
    }

    private void stop() {
        CompletableFuture<?> cancelled;
        synchronized (this) {
            if (interruptible != null) {
                interruptible.interrupt();
            }
            if (state == State.ENDED || (state == State.RUNNING && promised == null)) {
                return;
            }
            state = State.RUNNING; // so that it never begins
            cancelled = promised;
        }
        if (cancelled == null) {
            end(null);
        } else {
            cancelled.cancel(true);
        }
    }

    private void judge() {
        PolicyCall call = question.call();
        try {
            Object settings = judging.settingsOf(policy, call);
            Request request = new Request(question.document(), call.getUid(), context);
            span = judging.tracing().start(policy.name(), attributes(), question.traceparent());
            span.during(() -> put(request, settings));
        } catch (InvalidSettingsException error) {
            end(invalidSettings(error));
        } catch (InvalidDocumentException error) {
            end(failure(": " + error.getMessage()));
        } catch (
                Throwable error) { // a document or settings for which there is no room, or no stack
            end(thrown(error));
        }
    }

    private void put(Request request, Object settings) {
        Object answer;
        try {
            answer = policy.put(request, settings);
        } catch (Throwable error) { // an Error of one policy must not end the worker for all others
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
            promised = future;
        }
        future.whenComplete(
                (answer, error) -> end(error == null ? answered(answer) : thrown(cause(error))));
        if (context.isCancelled()) { // before there was something to cancel
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
            return judging.fitting(Outcomes.of(accepted, judging.versionOf(policy)), policy, uid());
        } catch (Throwable error) { // an answer for which there is no room, among others
            return thrown(error);
        }
    }

    /**
     * The outcome of a function that threw. Its text is shown only if it is one of ours, which hold
     * no values.
     */
    private Outcome thrown(Throwable error) {
        if (context.isCancelled()) { // what a policy throws when it is stopped is no news
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
                message, FailureReason.FAILURE_REASON_INVALID_SETTINGS, judging.versionOf(policy));
    }

    private Outcome failure(String what) {
        return Outcomes.failure("policy " + policy.name() + what, judging.versionOf(policy));
    }

    private String uid() {
        return question.call().getUid();
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
