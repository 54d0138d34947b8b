package cleanslate.adapter.kafka;

import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogOffsetsListener;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.log.VerificationGuard;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;

/** One named log: its directory, its clock and pending tasks, and Kafka's object while it is open. */
final class Replica {
    private static final int EXPIRATION_CHECK_MS = 600_000;
    /** Metrics of topics; they differ by topic name only and are never read. */
    private static final BrokerTopicStats STATS = new BrokerTopicStats(false);

    final String name;
    final Path dir;
    final VirtualClock clock;
    final TaskQueue tasks = new TaskQueue();
    private final Settings settings;
    /** The guard with number n, as told to the runner, is at n - 1. */
    private final List<VerificationGuard> guards = new ArrayList<>();
    private UnifiedLog log;

    Replica(String name, Path dir, Settings settings, long nowMs) {
        this.name = name;
        this.dir = dir;
        this.settings = settings;
        this.clock = new VirtualClock(nowMs);
    }

    boolean isOpen() {
        return log != null;
    }

    UnifiedLog log() throws ProtocolError {
        if (log == null) {
            throw new ProtocolError("log-closed", "log " + name + " is not open");
        }
        return log;
    }

    void requireClosed() throws ProtocolError {
        if (log != null) {
            throw new ProtocolError("log-open", "log " + name + " is open");
        }
    }

    void open(boolean clean, long logStart, long recoveryPoint) throws IOException {
        // A channel of its own for every opening: once a directory has failed, its channel refuses everything.
        log = UnifiedLog.create(dir.toFile(), settings.log, logStart, recoveryPoint, tasks, STATS, clock,
            settings.maxTransactionTimeoutMs, settings.producers, EXPIRATION_CHECK_MS, new LogDirFailureChannel(4), clean,
            Optional.empty(), new ConcurrentHashMap<>(), false, LogOffsetsListener.NO_OP_OFFSETS_LISTENER);
    }

    /** A clean stop: what a running broker would have done by now is done, then the log is flushed and its snapshot written. */
    void close() throws ProtocolError {
        UnifiedLog closing = log();
        tasks.runAll();
        log = null;
        try {
            Moved.close(closing);
        } finally {
            closing.removeLogMetrics();
        }
    }

    /** The end of the process: pending tasks are lost and nothing is written. Does nothing to a closed log. */
    void abandon() {
        tasks.shutdown();
        if (log == null) {
            return;
        }
        UnifiedLog abandoned = log;
        log = null;
        try {
            Moved.dropHandles(abandoned);
        } finally {
            // The registry of metrics is global and would keep the log for ever.
            abandoned.removeLogMetrics();
        }
    }

    /** The number of a guard; 0 for the one that asks for no verification. */
    int numberOf(VerificationGuard guard) {
        if (guard.equals(VerificationGuard.SENTINEL)) {
            return 0;
        }
        int at = guards.indexOf(guard);
        if (at >= 0) {
            return at + 1;
        }
        guards.add(guard);
        return guards.size();
    }

    VerificationGuard guard(int number) throws ProtocolError {
        if (number == 0) {
            return VerificationGuard.SENTINEL;
        }
        if (number > guards.size()) {
            throw new ProtocolError("unknown-guard", "log " + name + " has given out no guard " + number);
        }
        return guards.get(number - 1);
    }
}
