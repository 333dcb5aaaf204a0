package dev.admissiongateway.worker;

import admission.worker.v1.WorkerOuterClass;
import admission.worker.v1.WorkerOuterClass.DescribeResponse;
import admission.worker.v1.WorkerOuterClass.Phase;
import admission.worker.v1.WorkerOuterClass.PolicyDescription;
import admission.worker.v1.WorkerOuterClass.ValidateSettingsRequest;
import admission.worker.v1.WorkerOuterClass.ValidateSettingsResponse;

import java.util.Collection;
import java.util.Map;

/** Builds the responses of {@code Describe} and {@code ValidateSettings}. */
final class Descriptions {
    private Descriptions() {}

    /**
     * The response of {@code Describe}. It is built once, so that Describe is cheap and never
     * fails.
     */
    static DescribeResponse description(
            String worker, String version, Collection<Policy> policies) {
        DescribeResponse.Builder made =
                DescribeResponse.newBuilder().setWorker(worker).setVersion(version);
        policies.forEach(policy -> made.addPolicies(description(policy)));
        return made.build();
    }

    /** The response of {@code ValidateSettings}: all errors, or warnings. */
    static ValidateSettingsResponse findings(
            Map<String, Policy> policies, ValidateSettingsRequest called) {
        ValidateSettingsResponse.Builder answer = ValidateSettingsResponse.newBuilder();
        Policy policy = policies.get(called.getPolicy());
        if (policy == null) {
            String message = "the worker holds no policy " + Json.quoted(called.getPolicy());
            answer.addErrorsBuilder().setMessage(message);
            return answer.build();
        }
        try {
            answer.addAllWarnings(policy.settings().read(called.getSettings()).warnings());
        } catch (InvalidSettingsException invalid) {
            for (SettingsError error : invalid.errors()) {
                answer.addErrorsBuilder().setPointer(error.pointer()).setMessage(error.message());
            }
        }
        return answer.build();
    }

    /** The contract's value of a policy's phase. */
    static Phase phaseOf(Policy policy) {
        return policy.phase() == Policy.Phase.MUTATING
                ? Phase.PHASE_MUTATING
                : Phase.PHASE_VALIDATING;
    }

    private static PolicyDescription description(Policy policy) {
        PolicyDescription.Builder made =
                PolicyDescription.newBuilder()
                        .setName(policy.name())
                        .setVersion(policy.version())
                        .addPhases(phaseOf(policy))
                        .setSettingsSchema(policy.settings().schema())
                        .setDescription(policy.description());
        if (policy.inputs() != null) {
            made.setInputs(claim(policy.inputs()));
        }
        if (policy.writes() != null) {
            made.setWrites(claim(policy.writes()));
        }
        return made.build();
    }

    private static WorkerOuterClass.Claim claim(Claim claim) {
        WorkerOuterClass.Claim.Builder made = WorkerOuterClass.Claim.newBuilder();
        if (claim.isEverything()) {
            return made.setEverything(WorkerOuterClass.Claim.Everything.getDefaultInstance())
                    .build();
        }
        return made.setPointers(
                        WorkerOuterClass.Claim.Pointers.newBuilder()
                                .addAllPointers(claim.pointers()))
                .build();
    }
}
