package dev.admissiongateway.worker;

import java.io.IOException;
import java.io.InputStream;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.CountDownLatch;

/**
 * The worker's command: flags, signals, and the end with whoever started it.
 *
 * <p>It ends with exit code 0 when it was told to stop (SIGTERM, SIGINT) and stopped, 1 when it
 * cannot listen, 2 when a flag is wrong. A second signal ends it at once, with 1.
 *
 * <p>Started by a gateway ({@code ADMISSION_WORKER_SUPERVISED=1}), it also stops when its standard
 * input ends: the gateway holds the other end and writes nothing, so the end says that the gateway
 * has died, even by SIGKILL. Without that an orphan would keep the socket.
 */
final class Command {
    private static final int STOPPED = 0;
    private static final int CANNOT_LISTEN = 1;
    private static final int WRONG_FLAG = 2;

    private final CountDownLatch told = new CountDownLatch(1);

    private Command() {}

    /** Runs it and ends the process. */
    static void run(Worker worker, String[] arguments, Map<String, String> environment) {
        if (Arrays.asList(arguments).contains("--help")) {
            System.out.print(Options.help(worker));
            System.exit(STOPPED);
        }
        System.exit(new Command().serve(worker, arguments, environment));
    }

    private int serve(Worker worker, String[] arguments, Map<String, String> environment) {
        Options options;
        try {
            options = Options.read(arguments, environment);
        } catch (Options.WrongException error) {
            System.err.println(worker.name() + ": " + error.getMessage());
            return WRONG_FLAG;
        }
        LogLines.start(options.json(), options.level());
        Signals.tell(this::signalled, "TERM", "INT");
        Worker served = options.conformance() ? worker.withProbes() : worker;
        try (RunningWorker running =
                served.serve(options.listen(), options.limits(), options.tls())) {
            announce(served, running);
            if (options.supervised()) {
                watchStandardInput();
            }
            told.await();
            Log.info(
                    "stopping: open calls have "
                            + options.limits().gracePeriod().toMillis() / 1000.0
                            + " s");
        } catch (AddressException error) {
            Log.error(error.getMessage());
            return CANNOT_LISTEN;
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
        Log.info("stopped");
        return STOPPED;
    }

    private static void announce(Worker worker, RunningWorker running) {
        String names =
                worker.policies().isEmpty()
                        ? "none"
                        : String.join(", ", worker.policies().keySet());
        Log.info(
                "worker "
                        + worker.name()
                        + " "
                        + worker.version()
                        + " listens on "
                        + running.address()
                        + "; policies: "
                        + names);
    }

    private void signalled(String signal) {
        if (told.getCount() == 0) {
            Log.warning("SIG" + signal + " again: ending at once");
            Runtime.getRuntime().halt(CANNOT_LISTEN);
        }
        Log.info("SIG" + signal + " received");
        told.countDown();
    }

    /**
     * In a thread of its own: standard input may be a pipe, a terminal, a file or nothing at all.
     */
    private void watchStandardInput() {
        Threads.named("supervisor")
                .newThread(
                        () -> {
                            try (InputStream input = System.in) {
                                while (input.read() >= 0) {
                                    continue;
                                }
                            } catch (IOException none) {
                                Log.debug("there is no standard input: nobody supervises any more");
                            }
                            Log.info(
                                    "standard input has ended: whoever started this worker is"
                                        + " gone");
                            told.countDown();
                        })
                .start();
    }
}
