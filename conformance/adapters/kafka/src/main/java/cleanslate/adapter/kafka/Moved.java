package cleanslate.adapter.kafka;

import org.apache.kafka.storage.internals.log.ProducerStateManager;
import org.apache.kafka.storage.internals.log.UnifiedLog;

import java.lang.reflect.AccessibleObject;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * What has no name that all supported versions share, or no public name at all, reached by reflection. Everything else names Kafka's
 * classes directly, so that a change of a signature is seen by the compiler.
 */
final class Moved {
    private static final Method DROP_HANDLES = method(UnifiedLog.class, "closeQuietly", "closeHandlers");
    /** Since 4.4 a clean stop is in two steps; before, the second did the work of both, and a getter stands for the first. */
    private static final Method BEFORE_CLOSE = method(UnifiedLog.class, "prepareActiveSegmentForClose", "logEndOffset");
    private static final Field ONGOING = field("ongoingTxns");
    private static final Field UNREPLICATED = field("unreplicatedTxns");
    private static final Field VERIFICATION = field("verificationStates");
    /** The class of aborted transactions is in another package from version to version, its accessors are the same. */
    private static final Map<Class<?>, Map<String, Method>> ACCESSORS = new ConcurrentHashMap<>();

    private Moved() {
    }

    /** Gives up the files of a log as a dying process does: nothing is written. */
    static void dropHandles(UnifiedLog log) {
        invoke(DROP_HANDLES, log);
    }

    /** A clean stop: indexes are cut to their size, the snapshot is written, files are closed. */
    static void close(UnifiedLog log) {
        invoke(BEFORE_CLOSE, log);
        log.close();
    }

    static Map<?, ?> ongoingTransactions(ProducerStateManager producers) {
        return (Map<?, ?>) get(ONGOING, producers);
    }

    static Map<?, ?> unreplicatedTransactions(ProducerStateManager producers) {
        return (Map<?, ?>) get(UNREPLICATED, producers);
    }

    static Map<?, ?> verificationStates(ProducerStateManager producers) {
        return (Map<?, ?>) get(VERIFICATION, producers);
    }

    /** A number of an aborted transaction: {@code producerId}, {@code firstOffset}, {@code lastOffset}, {@code lastStableOffset}. */
    static long abortedNumber(Object aborted, String accessor) {
        Method method = ACCESSORS.computeIfAbsent(aborted.getClass(), c -> new ConcurrentHashMap<>())
            .computeIfAbsent(accessor, name -> method(aborted.getClass(), name));
        return ((Number) invoke(method, aborted)).longValue();
    }

    private static Method method(Class<?> owner, String... names) {
        for (String name : names) {
            try {
                return open(owner.getMethod(name));
            } catch (NoSuchMethodException e) {
                // Another version's name; the next one is tried.
            }
        }
        throw new IllegalStateException(owner.getName() + " has no method " + String.join(" or ", names));
    }

    private static Field field(String name) {
        try {
            return open(ProducerStateManager.class.getDeclaredField(name));
        } catch (NoSuchFieldException e) {
            throw new IllegalStateException("ProducerStateManager has no field " + name, e);
        }
    }

    private static <T extends AccessibleObject> T open(T member) {
        member.setAccessible(true);
        return member;
    }

    private static Object get(Field field, Object owner) {
        try {
            return field.get(owner);
        } catch (IllegalAccessException e) {
            throw new IllegalStateException(e);
        }
    }

    private static Object invoke(Method method, Object owner) {
        try {
            return method.invoke(owner);
        } catch (InvocationTargetException e) {
            if (e.getCause() instanceof RuntimeException cause) {
                throw cause;
            }
            throw new IllegalStateException(e.getCause());
        } catch (IllegalAccessException e) {
            throw new IllegalStateException(e);
        }
    }
}
