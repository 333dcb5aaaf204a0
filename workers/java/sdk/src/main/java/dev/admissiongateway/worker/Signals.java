package dev.admissiongateway.worker;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.function.Consumer;

/**
 * Handles signals with {@code sun.misc.Signal} (module jdk.unsupported, kept by JEP 260 until there
 * is a replacement). A shutdown hook can neither set the exit code nor receive a second signal. The
 * class is used by reflection, since the compiler's warning about it cannot be suppressed.
 */
final class Signals {
    private Signals() {}

    /**
     * Calls the listener, in its own thread, with the name of each signal.
     *
     * @param names such as {@code TERM}
     */
    static void handle(Consumer<String> listener, String... names) {
        try {
            Class<?> signal = Class.forName("sun.misc.Signal");
            Class<?> handler = Class.forName("sun.misc.SignalHandler");
            Method handle = signal.getMethod("handle", signal, handler);
            for (String name : names) {
                InvocationHandler invoked =
                        (proxy, method, arguments) ->
                                answer(proxy, method, arguments, name, listener);
                Object proxy =
                        Proxy.newProxyInstance(
                                handler.getClassLoader(), new Class<?>[] {handler}, invoked);
                handle.invoke(null, signal.getConstructor(String.class).newInstance(name), proxy);
            }
        } catch (ReflectiveOperationException missing) {
            Log.warning(
                    "this JVM does not deliver signals: a signal ends the worker with its open"
                        + " calls unanswered");
        }
    }

    private static Object answer(
            Object proxy,
            Method method,
            Object[] arguments,
            String name,
            Consumer<String> listener) {
        return switch (method.getName()) {
            case "handle" -> {
                listener.accept(name);
                yield null;
            }
            case "equals" -> proxy == arguments[0];
            case "hashCode" -> System.identityHashCode(proxy);
            default -> "the worker's handler of SIG" + name;
        };
    }
}
