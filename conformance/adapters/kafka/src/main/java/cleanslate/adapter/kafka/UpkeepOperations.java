package cleanslate.adapter.kafka;

import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.utils.Throttler;

import java.util.List;
import java.util.Map;
import java.util.OptionalLong;

/** What a broker does to a log by and by: segments, snapshots, expiration, retention, compaction, delayed tasks, time. */
final class UpkeepOperations {
    private static final int OFFSET_MAP_BYTES = 65_536;
    private static final int IO_BUFFER_BYTES = 65_536;
    private static final int MAX_IO_BUFFER_BYTES = 1 << 24;

    private final Replicas replicas;

    UpkeepOperations(Replicas replicas, Map<String, Operation> operations) {
        this.replicas = replicas;
        operations.put("roll", this::roll);
        operations.put("flush", this::flush);
        operations.put("snapshot", this::snapshot);
        operations.put("delete-snapshots", this::deleteSnapshots);
        operations.put("expire", this::expire);
        operations.put("retention", this::retention);
        operations.put("compact", this::compact);
        operations.put("run-tasks", this::runTasks);
        operations.put("set-time", this::setTime);
    }

    private Answer roll(Args args) throws Exception {
        UnifiedLog log = replicas.find(args).log();
        args.end();
        long base = log.roll().baseOffset();
        return out -> out.writeNumberField("base_offset", base);
    }

    private Answer flush(Args args) throws ProtocolError {
        UnifiedLog log = replicas.find(args).log();
        args.end();
        log.flush(false);
        return Answer.DONE;
    }

    private Answer snapshot(Args args) throws Exception {
        UnifiedLog log = replicas.find(args).log();
        args.end();
        log.takeProducerSnapshot();
        OptionalLong latest = log.latestProducerSnapshotOffset();
        return out -> {
            if (latest.isPresent()) {
                out.writeNumberField("latest", latest.getAsLong());
            } else {
                out.writeNullField("latest");
            }
        };
    }

    private Answer deleteSnapshots(Args args) throws Exception {
        UnifiedLog log = replicas.find(args).log();
        long before = args.offset("before");
        args.end();
        log.producerStateManager().deleteSnapshotsBefore(before);
        return Answer.DONE;
    }

    private Answer expire(Args args) throws ProtocolError {
        UnifiedLog log = replicas.find(args).log();
        long nowMs = args.offset("now_ms");
        args.end();
        log.removeExpiredProducers(nowMs);
        return Answer.DONE;
    }

    private Answer retention(Args args) throws Exception {
        UnifiedLog log = replicas.find(args).log();
        args.end();
        int segments = log.deleteOldSegments();
        return out -> out.writeNumberField("segments", segments);
    }

    private Answer compact(Args args) throws Exception {
        Replica replica = replicas.find(args);
        UnifiedLog log = replica.log();
        long firstDirty = args.offset("first_dirty");
        long firstUncleanable = args.offset("first_uncleanable");
        long nowMs = args.offset("now_ms");
        args.end();
        Throttler unlimited = new Throttler(Double.MAX_VALUE, Long.MAX_VALUE, "cleaner-io", "bytes", replica.clock);
        Cleaner cleaner = new Cleaner(0, new SkimpyOffsetMap(OFFSET_MAP_BYTES), IO_BUFFER_BYTES, MAX_IO_BUFFER_BYTES, 0.9, unlimited,
            replica.clock, partition -> { });
        long nextDirty = cleaner.doClean(new LogToClean(log, firstDirty, firstUncleanable, false), nowMs).getKey();
        return out -> out.writeNumberField("next_dirty", nextDirty);
    }

    private Answer runTasks(Args args) throws ProtocolError {
        Replica replica = replicas.find(args);
        replica.log();
        args.end();
        List<String> names = replica.tasks.runAll();
        return out -> {
            out.writeArrayFieldStart("tasks");
            for (String name : names) {
                out.writeString(name);
            }
            out.writeEndArray();
        };
    }

    private Answer setTime(Args args) throws ProtocolError {
        Replica replica = replicas.find(args);
        long nowMs = args.offset("now_ms");
        args.end();
        replica.clock.set(nowMs);
        return Answer.DONE;
    }
}
