package dev.admissiongateway.worker;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.function.Consumer;

/**
 * Signals of the operating system, by {@code sun.misc.Signal} (module jdk.unsupported, kept by JEP
 * 260 until there is another way). A shutdown hook, which Java has for this, could neither give the
 * exit code nor see a second signal. Called by reflection, as the compiler warns of it and cannot
 * be told that this is known.
 */
final class Signals {
    private Signals() {}

    /**
     * Calls the listener, in a thread of its own, with the name of each signal that comes.
     *
     * @param names such as {@code TERM}
     */
    static void tell(Consumer<String> listener, String... names) {
        try {
            Class<?> signal = Class.forName("sun.misc.Signal");
            Class<?> handler = Class.forName("sun.misc.SignalHandler");
            Method handle = signal.getMethod("handle", signal, handler);
            for (String name : names) {
                InvocationHandler told =
                        (proxy, method, arguments) ->
                                answer(proxy, method, arguments, name, listener);
                Object proxy =
                        Proxy.newProxyInstance(
                                handler.getClassLoader(), new Class<?>[] {handler}, told);
                handle.invoke(null, signal.getConstructor(String.class).newInstance(name), proxy);
            }
        } catch (ReflectiveOperationException missing) {
            Log.warning(
                    "this Java tells of no signals: it will end without finishing what is open");
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
