package cleanslate.adapter.kafka;

import org.apache.kafka.server.common.OffsetAndEpoch;
import org.apache.kafka.storage.internals.log.LogOffsetMetadata;
import org.apache.kafka.storage.internals.log.LogStartOffsetIncrementReason;
import org.apache.kafka.storage.internals.log.UnifiedLog;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** Where a log begins and ends, and who leads it: truncation, high watermark, log start offset, leader epochs. */
final class OffsetOperations {
    private final Replicas replicas;

    OffsetOperations(Replicas replicas, Map<String, Operation> operations) {
        this.replicas = replicas;
        operations.put("truncate", this::truncate);
        operations.put("truncate-fully", this::truncateFully);
        operations.put("high-watermark", this::highWatermark);
        operations.put("log-start", this::logStart);
        operations.put("become-leader", this::becomeLeader);
        operations.put("end-offset-for-epoch", this::endOffsetForEpoch);
    }

    private Answer truncate(Args args) throws ProtocolError {
        UnifiedLog log = replicas.find(args).log();
        long offset = args.offset("offset");
        args.end();
        boolean changed = log.truncateTo(offset);
        return out -> out.writeBooleanField("changed", changed);
    }

    private Answer truncateFully(Args args) throws ProtocolError {
        UnifiedLog log = replicas.find(args).log();
        long offset = args.offset("offset");
        args.end();
        log.truncateFullyAndStartAt(offset, Optional.empty());
        return Answer.DONE;
    }

    private Answer highWatermark(Args args) throws ProtocolError, IOException {
        UnifiedLog log = replicas.find(args).log();
        long offset = args.offset("offset");
        String rule = args.oneOf("rule", List.of("set", "follower", "leader"));
        args.end();
        switch (rule) {
            case "set" -> log.updateHighWatermark(offset);
            case "follower" -> log.maybeUpdateHighWatermark(offset);
            default -> log.maybeIncrementHighWatermark(position(log, offset));
        }
        long after = log.highWatermark();
        return out -> out.writeNumberField("high_watermark", after);
    }

    /** The leader compares positions, so it is given one where there is one; what lies beyond the end is its to refuse. */
    private static LogOffsetMetadata position(UnifiedLog log, long offset) throws IOException {
        if (offset > log.logEndOffset()) {
            return new LogOffsetMetadata(offset);
        }
        LogOffsetMetadata batch = log.maybeConvertToOffsetMetadata(offset);
        // What was converted names the beginning of the batch that holds the offset.
        return batch.messageOffsetOnly() ? batch : new LogOffsetMetadata(offset, batch.segmentBaseOffset, batch.relativePositionInSegment);
    }

    private Answer logStart(Args args) throws ProtocolError {
        UnifiedLog log = replicas.find(args).log();
        long offset = args.offset("offset");
        args.end();
        boolean changed = log.maybeIncrementLogStartOffset(offset, LogStartOffsetIncrementReason.ClientRecordDeletion);
        return out -> out.writeBooleanField("changed", changed);
    }

    private Answer becomeLeader(Args args) throws ProtocolError {
        UnifiedLog log = replicas.find(args).log();
        int epoch = args.int32("leader_epoch", 0);
        args.end();
        log.assignEpochStartOffset(epoch, log.logEndOffset());
        return Answer.DONE;
    }

    private Answer endOffsetForEpoch(Args args) throws ProtocolError {
        UnifiedLog log = replicas.find(args).log();
        int epoch = args.int32("leader_epoch", 0);
        args.end();
        Optional<OffsetAndEpoch> found = log.endOffsetForEpoch(epoch);
        return out -> {
            if (found.isPresent()) {
                out.writeNumberField("leader_epoch", found.get().epoch());
                out.writeNumberField("end_offset", found.get().offset());
            } else {
                out.writeNullField("leader_epoch");
                out.writeNullField("end_offset");
            }
        };
    }
}
