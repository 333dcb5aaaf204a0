package dev.admissiongateway.worker;

import java.util.Collection;
import java.util.List;
import java.util.concurrent.CompletionStage;
import java.util.function.Function;
import java.util.regex.Pattern;

/**
 * A policy: a name, a phase, a function, the type of its settings and its claims. It is validated
 * when it is built and registered.
 *
 * <pre>{@code
 * Policy.validating("required-label")
 *     .settings(RequiredLabel.class)
 *     .inputs("/object/metadata/labels")
 *     .description("Denies objects that lack a label.")
 *     .judge(Labels::requiredLabel)
 * }</pre>
 *
 * <p>An invalid registration throws when the program starts, before the worker serves. The choice
 * among the {@code judge} methods determines in which threads the function runs.
 */
public final class Policy {
    /**
     * A DNS label (RFC 1123) as Kubernetes defines it: "at most 63 characters, only lowercase
     * alphanumeric characters or '-', start and end with an alphanumeric character".
     */
    private static final Pattern DNS_LABEL = Pattern.compile("[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?");

    /** The admission phases of Kubernetes. */
    public enum Phase {
        /** May change the object; policies run one after another. */
        MUTATING,
        /** Allows or denies, and changes nothing; policies run at the same time. */
        VALIDATING
    }

    /** How a policy's function is run. */
    enum Style {
        /** In one of as many threads as processors: a pure function of its document. */
        PLAIN,
        /** In one of as many threads as processors: a function that returns a stage. */
        LATER,
        /** In one of many threads: a function that blocks. */
        BLOCKING
    }

    /**
     * A policy's function.
     *
     * @param <S> the type of the settings
     * @param <R> what it returns: an answer, or a stage of one
     */
    @FunctionalInterface
    public interface Judge<S, R> {
        /**
         * Returns the answer; null is {@link Answer#allow()}. An exception is a failure, never a
         * verdict.
         */
        R judge(Request request, S settings) throws Exception;
    }

    /**
     * The function of a policy without settings.
     *
     * @param <R> what it returns: an answer, or a stage of one
     */
    @FunctionalInterface
    public interface PlainJudge<R> {
        /** Returns the answer, like {@link Judge#judge}. */
        R judge(Request request) throws Exception;
    }

    private final String name;
    private final Phase phase;
    private final Style style;
    private final Judge<Object, Object> function;
    private final SettingsType<?> settings;
    private final Claim inputs;
    private final Claim writes;
    private final String version;
    private final String description;

    @SuppressWarnings("unchecked") // the settings come from its own SettingsType
    private <S> Policy(Builder<S> made, Style style, Judge<? super S, ?> function) {
        this.name = made.name;
        this.phase = made.phase;
        this.style = style;
        this.function = (Judge<Object, Object>) (Judge<?, ?>) function;
        this.settings = made.settings;
        this.inputs = Claim.inputs(made.inputs, "policy " + name + ": inputs");
        this.writes = Claim.writes(made.writes, "policy " + name + ": writes");
        this.version = made.version;
        this.description = made.description;
        if (phase == Phase.VALIDATING && writes != null) {
            throw new IllegalArgumentException(
                    "policy "
                            + name
                            + ": a validating policy changes nothing: claim no writes, or make it"
                            + " mutating");
        }
    }

    /**
     * Starts a validating policy: it allows or denies, and changes nothing.
     *
     * @param name that the gateway's configuration has in {@code policy}
     * @throws IllegalArgumentException the name is not a DNS-1123 label
     */
    public static Builder<Void> validating(String name) {
        return new Builder<>(name, Phase.VALIDATING);
    }

    /**
     * Starts a mutating policy: it allows, with or without a change, or denies.
     *
     * @param name that the gateway's configuration has in {@code policy}
     * @throws IllegalArgumentException the name is not a DNS-1123 label
     */
    public static Builder<Void> mutating(String name) {
        return new Builder<>(name, Phase.MUTATING);
    }

    /** Its name. */
    public String name() {
        return name;
    }

    /** Its phase. */
    public Phase phase() {
        return phase;
    }

    Style style() {
        return style;
    }

    SettingsType<?> settings() {
        return settings;
    }

    Claim inputs() {
        return inputs;
    }

    Claim writes() {
        return writes;
    }

    String version() {
        return version;
    }

    String description() {
        return description;
    }

    /** Calls the author's function. */
    Object invoke(Request request, Object converted) throws Exception {
        return function.judge(request, converted);
    }

    /**
     * Builds a policy. Every method except the {@code judge} methods returns the builder.
     *
     * @param <S> the type of the settings
     */
    public static final class Builder<S> {
        private final String name;
        private final Phase phase;
        private SettingsType<?> settings = new SettingsType<>(SettingsType.None.class, null, null);
        private Claim inputs;
        private Claim writes;
        private String version = "";
        private String description = "";

        private Builder(String name, Phase phase) {
            if (name == null || !DNS_LABEL.matcher(name).matches()) {
                throw new IllegalArgumentException(
                        "policy "
                                + Json.quoted(name)
                                + ": the name must be a DNS-1123 label such as"
                                + " \"required-labels\"");
            }
            this.name = name;
            this.phase = phase;
        }

        /**
         * Sets the type of the settings. Without it the policy has no settings, and accepts {@code
         * {}}.
         *
         * @param type a record, or another type that Jackson reads from a JSON object
         */
        public <T> Builder<T> settings(Class<T> type) {
            return settings(type, null);
        }

        /**
         * Sets the type of the settings, and a check for what the type cannot express.
         *
         * @param type a record, or another type that Jackson reads from a JSON object
         * @param check returns errors and warnings about the converted settings; null: none
         */
        @SuppressWarnings("unchecked") // the same builder, with the type
        public <T> Builder<T> settings(
                Class<T> type, Function<? super T, ? extends Collection<? extends Finding>> check) {
            this.settings = new SettingsType<>(type, check, null);
            this.settings.schema(); // a type without a schema throws here, not in Describe
            return (Builder<T>) this;
        }

        /**
         * Sets a JSON Schema (2020-12) in place of the one generated from the type. Call it after
         * {@code settings}.
         *
         * @param text JSON
         * @throws IllegalArgumentException the schema is not a JSON object
         */
        public Builder<S> schema(String text) {
            this.settings = settings.withSchema(text, name);
            return this;
        }

        /**
         * Sets the fields that the policy reads, as JSON Pointers over the AdmissionRequest such as
         * {@code /object/metadata/labels} (a segment {@code *} is every element or member). The
         * gateway sends only these, and caches verdicts by them.
         */
        public Builder<S> inputs(String... pointers) {
            return inputs(Claim.of(pointers));
        }

        /** Sets the fields that the policy reads, as JSON Pointers. */
        public Builder<S> inputs(List<String> pointers) {
            return inputs(Claim.of(pointers));
        }

        /** Sets the fields that the policy reads. Default: all that the operator grants. */
        public Builder<S> inputs(Claim claim) {
            this.inputs = claim;
            return this;
        }

        /**
         * Sets the fields that the policy may change, as JSON Pointers over the object such as
         * {@code /metadata/labels}.
         */
        public Builder<S> writes(String... pointers) {
            return writes(Claim.of(pointers));
        }

        /** Sets the fields that the policy may change, as JSON Pointers over the object. */
        public Builder<S> writes(List<String> pointers) {
            return writes(Claim.of(pointers));
        }

        /** Sets the fields that the policy may change. Default: all that the operator grants. */
        public Builder<S> writes(Claim claim) {
            this.writes = claim;
            return this;
        }

        /** Sets its own version, if it changes less often than the worker's. */
        public Builder<S> version(String own) {
            this.version = own;
            return this;
        }

        /** Sets a description for the operator: one or two sentences. */
        public Builder<S> description(String text) {
            this.description = text;
            return this;
        }

        /**
         * Returns the policy, with a pure function of its document, which takes microseconds.
         *
         * @throws IllegalArgumentException a claim is invalid, or a validating policy has writes
         */
        public Policy judge(Judge<? super S, ? extends Answer> function) {
            return new Policy(this, Style.PLAIN, function);
        }

        /** Like {@link #judge(Judge)}, without settings. */
        public Policy judge(PlainJudge<? extends Answer> function) {
            return judge((request, none) -> function.judge(request));
        }

        /**
         * Returns the policy, with a function that returns a stage. The stage is cancelled when the
         * gateway no longer waits; use {@link Request#cancelled()} to cancel the operations behind
         * it.
         */
        public Policy judgeLater(
                Judge<? super S, ? extends CompletionStage<? extends Answer>> function) {
            return new Policy(this, Style.LATER, function);
        }

        /** Like {@link #judgeLater(Judge)}, without settings. */
        public Policy judgeLater(PlainJudge<? extends CompletionStage<? extends Answer>> function) {
            return judgeLater((request, none) -> function.judge(request));
        }

        /**
         * Returns the policy, with a blocking function: it runs in one of a limited number of
         * threads, and is interrupted when the gateway no longer waits.
         */
        public Policy judgeBlocking(Judge<? super S, ? extends Answer> function) {
            return new Policy(this, Style.BLOCKING, function);
        }

        /** Like {@link #judgeBlocking(Judge)}, without settings. */
        public Policy judgeBlocking(PlainJudge<? extends Answer> function) {
            return judgeBlocking((request, none) -> function.judge(request));
        }
    }
}
