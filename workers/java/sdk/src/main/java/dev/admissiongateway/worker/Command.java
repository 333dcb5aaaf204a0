package dev.admissiongateway.worker;

import java.io.IOException;
import java.io.InputStream;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.CountDownLatch;

/**
 * The command of a worker: flags, signals, and supervision by the parent process.
 *
 * <p>Exit codes: 0 stopped by a signal (SIGTERM, SIGINT), 1 cannot listen, 2 a flag or variable is
 * invalid. A second signal ends the process at once, with 1.
 *
 * <p>Under a gateway ({@code ADMISSION_WORKER_SUPERVISED=1}) the worker also stops when its
 * standard input ends. The gateway holds the other end of that pipe and writes nothing, so that the
 * end reports the death of the gateway, even by SIGKILL. An orphan would keep the socket.
 */
final class Command {
    private static final int STOPPED = 0;
    private static final int CANNOT_LISTEN = 1;
    private static final int WRONG_FLAG = 2;

    private final CountDownLatch stopRequested = new CountDownLatch(1);

    private Command() {}

    /** Runs the command and ends the process. */
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
        Signals.handle(this::signalled, "TERM", "INT");
        Worker served = options.conformance() ? worker.withProbes() : worker;
        try (RunningWorker running =
                served.serve(options.listen(), options.limits(), options.tls())) {
            announce(served, running);
            if (options.supervised()) {
                watchStandardInput();
            }
            stopRequested.await();
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
        if (stopRequested.getCount() == 0) {
            Log.warning("SIG" + signal + " again: ending at once");
            Runtime.getRuntime().halt(CANNOT_LISTEN);
        }
        Log.info("SIG" + signal + " received");
        stopRequested.countDown();
    }

    /** Runs in its own thread: standard input may be a pipe, a terminal, a file or closed. */
    private void watchStandardInput() {
        Threads.named("supervisor")
                .newThread(
                        () -> {
                            try (InputStream input = System.in) {
                                while (input.read() >= 0) {
                                    continue;
                                }
                            } catch (IOException none) {
                                Log.debug("standard input cannot be read");
                            }
                            Log.info("standard input has ended: the parent process is gone");
                            stopRequested.countDown();
                        })
                .start();
    }
}
