package cleanslate.adapter.kafka;

import org.apache.kafka.common.message.FetchResponseData.AbortedTransaction;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Records;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.FetchDataInfo;
import org.apache.kafka.storage.internals.log.LogAppendInfo;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.log.VerificationGuard;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;

/** Bytes in and out: appends, the guards that they may need, and reads. */
final class AppendOperations {
    private static final Map<String, AppendOrigin> ORIGINS = Map.of(
        "client", AppendOrigin.CLIENT, "coordinator", AppendOrigin.COORDINATOR, "replication", AppendOrigin.REPLICATION);
    private static final Map<String, FetchIsolation> ISOLATIONS = Map.of(
        "log-end", FetchIsolation.LOG_END, "high-watermark", FetchIsolation.HIGH_WATERMARK, "committed", FetchIsolation.TXN_COMMITTED);

    private final Replicas replicas;

    AppendOperations(Replicas replicas, Map<String, Operation> operations) {
        this.replicas = replicas;
        operations.put("append-leader", this::appendLeader);
        operations.put("append-follower", this::appendFollower);
        operations.put("start-verification", this::startVerification);
        operations.put("read", this::read);
    }

    private Answer appendLeader(Args args) throws ProtocolError {
        Replica replica = replicas.find(args);
        UnifiedLog log = replica.log();
        byte[] batch = args.bytes("batch");
        AppendOrigin origin = ORIGINS.get(args.oneOf("origin", List.of("client", "coordinator", "replication")));
        int leaderEpoch = args.int32("leader_epoch", 0);
        short transactionVersion = (short) args.number("transaction_version", -1, Short.MAX_VALUE, 0);
        VerificationGuard guard = replica.guard((int) args.number("guard", 0, Integer.MAX_VALUE, 0));
        args.end();
        long end = log.logEndOffset();
        // The array is this request's own: a leader writes offsets and its epoch into the bytes that it is given.
        MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(batch));
        LogAppendInfo info = log.appendAsLeader(records, leaderEpoch, origin, RequestLocal.noCaching(), guard, transactionVersion);
        return appended(info, log.logEndOffset() == end);
    }

    private Answer appendFollower(Args args) throws ProtocolError {
        UnifiedLog log = replicas.find(args).log();
        byte[] batches = args.bytes("batches");
        int leaderEpoch = args.int32("leader_epoch", 0);
        args.end();
        long end = log.logEndOffset();
        LogAppendInfo info = log.appendAsFollower(MemoryRecords.readableRecords(ByteBuffer.wrap(batches)), leaderEpoch);
        return appended(info, log.logEndOffset() == end);
    }

    /** A success that leaves the log's end where it was is a duplicate if it names offsets; else everything was filtered out. */
    private static Answer appended(LogAppendInfo info, boolean sameEnd) {
        // Batches of magic 0 and 1 do not tell their first offset.
        boolean nothing = info.lastOffset() < 0;
        String outcome = nothing ? "nothing" : sameEnd ? "duplicate" : "appended";
        return out -> {
            out.writeStringField("outcome", outcome);
            if (!nothing) {
                out.writeNumberField("base_offset", info.firstOffset());
                out.writeNumberField("last_offset", info.lastOffset());
            }
        };
    }

    private Answer startVerification(Args args) throws ProtocolError {
        Replica replica = replicas.find(args);
        UnifiedLog log = replica.log();
        long producerId = args.offset("producer_id");
        short epoch = (short) args.number("producer_epoch", 0, Short.MAX_VALUE);
        int sequence = args.int32("sequence", -1);
        boolean epochBump = args.flag("epoch_bump", false);
        args.end();
        int guard = replica.numberOf(log.maybeStartTransactionVerification(producerId, sequence, epoch, epochBump));
        return out -> out.writeNumberField("guard", guard);
    }

    private Answer read(Args args) throws ProtocolError, IOException {
        UnifiedLog log = replicas.find(args).log();
        long offset = args.offset("offset");
        int maxBytes = args.int32("max_bytes", 0);
        FetchIsolation isolation = ISOLATIONS.get(args.oneOf("isolation", List.of("log-end", "high-watermark", "committed")));
        boolean minOneMessage = args.flag("min_one_message", true);
        args.end();
        // A reply has to fit into a line, in which a byte takes two.
        FetchDataInfo data = log.read(offset, Math.min(maxBytes, Lines.MAX_BYTES / 2 - 4096), isolation, minOneMessage);
        byte[] bytes = bytesOf(data.records);
        return out -> {
            out.writeStringField("records", Hex.encode(bytes));
            if (data.abortedTransactions.isEmpty()) {
                out.writeNullField("aborted");
                return;
            }
            out.writeArrayFieldStart("aborted");
            for (AbortedTransaction aborted : data.abortedTransactions.get()) {
                out.writeStartObject();
                out.writeNumberField("producer_id", aborted.producerId());
                out.writeNumberField("first_offset", aborted.firstOffset());
                out.writeEndObject();
            }
            out.writeEndArray();
        };
    }

    private static byte[] bytesOf(Records records) throws IOException {
        byte[] bytes = new byte[records.sizeInBytes()];
        if (records instanceof FileRecords file) {
            file.readInto(ByteBuffer.wrap(bytes), 0);
        } else if (records instanceof MemoryRecords memory) {
            memory.buffer().duplicate().get(bytes);
        } else {
            throw new IllegalStateException("a read gave " + records.getClass().getName());
        }
        return bytes;
    }
}
