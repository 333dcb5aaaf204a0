package dev.admissiongateway.worker;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A process that runs {@link WorkerProgram}, and its standard error. */
final class WorkerProcess implements AutoCloseable {
    private static final Pattern LISTENS =
            Pattern.compile("worker program 1.2.3 listens on (\\S+); policies: (.*?)\"?}?");

    private final Process process;
    private final BlockingQueue<String> lines = new LinkedBlockingQueue<>();

    WorkerProcess(Map<String, String> environment, String... arguments) throws IOException {
        List<String> command = new ArrayList<>();
        command.add(ProcessHandle.current().info().command().orElse("java"));
        command.addAll(
                List.of(
                        "-cp",
                        System.getProperty("java.class.path"),
                        WorkerProgram.class.getName()));
        command.addAll(Arrays.asList(arguments));
        ProcessBuilder builder =
                new ProcessBuilder(command).redirectOutput(ProcessBuilder.Redirect.DISCARD);
        builder.environment().putAll(environment);
        process = builder.start();
        Threads.named("lines").newThread(this::read).start();
    }

    private void read() {
        try (BufferedReader reader = process.errorReader(StandardCharsets.UTF_8)) {
            reader.lines().forEach(lines::add);
        } catch (IOException | RuntimeException ended) {
            lines.add("standard error failed: " + ended);
        }
    }

    /** The next line that matches; earlier ones are dropped. */
    Matcher line(Pattern pattern) throws InterruptedException {
        while (true) {
            String line = lines.poll(ServedWorker.TIMEOUT_SECONDS, TimeUnit.SECONDS);
            if (line == null) {
                throw new AssertionError("no line matches " + pattern);
            }
            Matcher found = pattern.matcher(line);
            if (found.find()) {
                return found;
            }
        }
    }

    String line(String part) throws InterruptedException {
        Matcher found = line(Pattern.compile(".*" + Pattern.quote(part) + ".*"));
        return found.group();
    }

    String address() throws InterruptedException {
        return line(LISTENS).group(1);
    }

    /** The next line. */
    String next() throws InterruptedException {
        return lines.poll(ServedWorker.TIMEOUT_SECONDS, TimeUnit.SECONDS);
    }

    void signal() {
        process.toHandle()
                .destroy(); // SIGTERM; unlike Process.destroy() it leaves standard error open
    }

    void endInput() throws IOException {
        process.getOutputStream().close();
    }

    int exitCode() throws InterruptedException {
        if (!process.waitFor(ServedWorker.TIMEOUT_SECONDS, TimeUnit.SECONDS)) {
            throw new AssertionError("the process does not end");
        }
        return process.exitValue();
    }

    @Override
    public void close() {
        process.destroyForcibly();
    }
}
