package dev.admissiongateway.worker;

/** A worker for tests of the command. */
public final class WorkerProgram {
    private WorkerProgram() {}

    /** Serves. */
    public static void main(String[] arguments) {
        new Worker("program", "1.2.3")
                .register(Policy.validating("quick").judge(request -> null))
                .register(
                        Policy.validating("throws")
                                .judge(
                                        request -> {
                                            throw new IllegalStateException("a secret");
                                        }))
                .register(
                        Policy.validating("wait")
                                .judgeBlocking(
                                        request -> {
                                            Thread.sleep(Long.parseLong(request.name()));
                                            return Answer.deny("waited");
                                        }))
                .main(arguments);
    }
}
