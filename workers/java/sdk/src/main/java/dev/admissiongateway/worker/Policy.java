package dev.admissiongateway.worker;

import java.util.Collection;
import java.util.List;
import java.util.concurrent.CompletionStage;
import java.util.function.Function;
import java.util.regex.Pattern;

/**
 * What a policy is: a name, a phase, a function, its settings and what it claims. Checked when it
 * is built and registered.
 *
 * <pre>{@code
 * Policy.validating("required-label")
 *     .settings(RequiredLabel.class)
 *     .inputs("/object/metadata/labels")
 *     .description("Denies objects that lack a label.")
 *     .judge(Labels::requiredLabel)
 * }</pre>
 *
 * <p>A mistake in a registration is the author's, and shows when the program starts: nothing is
 * served until all policies are sound. Which of the {@code judge} methods is called says how the
 * function waits.
 */
public final class Policy {
    /**
     * RFC 1123's label as Kubernetes has it: "at most 63 characters, only lowercase alphanumeric
     * characters or '-', start and end with an alphanumeric character".
     */
    private static final Pattern DNS_LABEL = Pattern.compile("[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?");

    /** Kubernetes' two admission phases. */
    public enum Phase {
        /** May change the object; policies run one after another. */
        MUTATING,
        /** Allows or denies, and changes nothing; policies run at the same time. */
        VALIDATING
    }

    /** How a policy's function is run. */
    enum Style {
        /** In one of a few threads, as many as processors: a pure function of its document. */
        PLAIN,
        /** In one of a few threads, until it returns a stage that completes later. */
        LATER,
        /** In one of many threads: a function that waits. */
        BLOCKING
    }

    /**
     * A policy's function.
     *
     * @param <S> the type of the settings
     * @param <R> what it returns: an answer, or the promise of one
     */
    @FunctionalInterface
    public interface Judge<S, R> {
        /**
         * Judges. Null is {@link Answer#allow()}; whatever is thrown is a failure, and never a
         * verdict.
         */
        R judge(Request request, S settings) throws Exception;
    }

    /**
     * The function of a policy without settings.
     *
     * @param <R> what it returns: an answer, or the promise of one
     */
    @FunctionalInterface
    public interface PlainJudge<R> {
        /** Judges, as {@link Judge#judge}. */
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

    @SuppressWarnings(
            "unchecked") // the settings that it is called with come out of its own SettingsType
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
     * Begins a validating policy: it allows or denies, and changes nothing.
     *
     * @param name as the configuration's {@code policy} names it
     * @throws IllegalArgumentException the name is no DNS-1123 label
     */
    public static Builder<Void> validating(String name) {
        return new Builder<>(name, Phase.VALIDATING);
    }

    /**
     * Begins a mutating policy: it allows, perhaps with a change, or denies.
     *
     * @param name as the configuration's {@code policy} names it
     * @throws IllegalArgumentException the name is no DNS-1123 label
     */
    public static Builder<Void> mutating(String name) {
        return new Builder<>(name, Phase.MUTATING);
    }

    /** Its name. */
    public String name() {
        return name;
    }

    /** The phase in which it can be used. */
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
    Object put(Request request, Object converted) throws Exception {
        return function.judge(request, converted);
    }

    /**
     * Gathers what a policy is. Every method but the {@code judge} ones returns the builder.
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
         * The type of its settings. Without it the policy has none, and accepts {@code {}}.
         *
         * @param type a record, or another type that Jackson reads from a JSON object
         */
        public <T> Builder<T> settings(Class<T> type) {
            return settings(type, null);
        }

        /**
         * The type of its settings, and what the type cannot say.
         *
         * @param type a record, or another type that Jackson reads from a JSON object
         * @param check the converted settings in, what is wrong and what to warn about out; null:
         *     nothing
         */
        @SuppressWarnings("unchecked") // the same builder, which from here on knows its type
        public <T> Builder<T> settings(
                Class<T> type, Function<? super T, ? extends Collection<? extends Finding>> check) {
            this.settings = new SettingsType<>(type, check, null);
            this.settings.schema(); // a type that has none shows here, and not in Describe
            return (Builder<T>) this;
        }

        /**
         * A JSON Schema (2020-12) in place of the one that is made from the type; after {@code
         * settings}.
         *
         * @param text JSON
         * @throws IllegalArgumentException it is no JSON object
         */
        public Builder<S> schema(String text) {
            this.settings = settings.withSchema(text, name);
            return this;
        }

        /**
         * What it reads, as JSON Pointers over the AdmissionRequest such as {@code
         * /object/metadata/labels} (a segment {@code *} is every element or member). The policy is
         * sent no more than that, and verdicts are cached by it.
         */
        public Builder<S> inputs(String... pointers) {
            return inputs(Claim.of(pointers));
        }

        /** What it reads, as JSON Pointers. */
        public Builder<S> inputs(List<String> pointers) {
            return inputs(Claim.of(pointers));
        }

        /** What it reads; not said, it is sent whatever the operator grants. */
        public Builder<S> inputs(Claim claim) {
            this.inputs = claim;
            return this;
        }

        /**
         * What it may change, as JSON Pointers over the object such as {@code /metadata/labels}.
         */
        public Builder<S> writes(String... pointers) {
            return writes(Claim.of(pointers));
        }

        /** What it may change, as JSON Pointers over the object. */
        public Builder<S> writes(List<String> pointers) {
            return writes(Claim.of(pointers));
        }

        /** What it may change; not said, it may change whatever the operator grants. */
        public Builder<S> writes(Claim claim) {
            this.writes = claim;
            return this;
        }

        /** Its own version, where it changes more rarely than the worker's. */
        public Builder<S> version(String own) {
            this.version = own;
            return this;
        }

        /** One or two sentences for the operator. */
        public Builder<S> description(String text) {
            this.description = text;
            return this;
        }

        /**
         * The policy, with a pure function of its document, which takes microseconds.
         *
         * @throws IllegalArgumentException a claim that is no place, or writes of a validating
         *     policy
         */
        public Policy judge(Judge<? super S, ? extends Answer> function) {
            return new Policy(this, Style.PLAIN, function);
        }

        /** As {@link #judge(Judge)}, without settings. */
        public Policy judge(PlainJudge<? extends Answer> function) {
            return judge((request, none) -> function.judge(request));
        }

        /**
         * The policy, with a function that returns at once and answers later. Its stage is
         * cancelled when nobody waits any more; {@link Request#cancelled()} tells what it was made
         * from.
         */
        public Policy judgeLater(
                Judge<? super S, ? extends CompletionStage<? extends Answer>> function) {
            return new Policy(this, Style.LATER, function);
        }

        /** As {@link #judgeLater(Judge)}, without settings. */
        public Policy judgeLater(PlainJudge<? extends CompletionStage<? extends Answer>> function) {
            return judgeLater((request, none) -> function.judge(request));
        }

        /**
         * The policy, with a function that waits: it runs in a thread of its own, of which there is
         * a bounded number, and is interrupted when nobody waits any more.
         */
        public Policy judgeBlocking(Judge<? super S, ? extends Answer> function) {
            return new Policy(this, Style.BLOCKING, function);
        }

        /** As {@link #judgeBlocking(Judge)}, without settings. */
        public Policy judgeBlocking(PlainJudge<? extends Answer> function) {
            return judgeBlocking((request, none) -> function.judge(request));
        }
    }
}
