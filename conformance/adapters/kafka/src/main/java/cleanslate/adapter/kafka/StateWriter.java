package cleanslate.adapter.kafka;

import com.fasterxml.jackson.core.JsonGenerator;
import org.apache.kafka.common.errors.CorruptRecordException;
import org.apache.kafka.storage.internals.log.BatchMetadata;
import org.apache.kafka.storage.internals.log.EpochEntry;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.ProducerStateEntry;
import org.apache.kafka.storage.internals.log.ProducerStateManager;
import org.apache.kafka.storage.internals.log.SnapshotFile;
import org.apache.kafka.storage.internals.log.TxnMetadata;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.log.VerificationStateEntry;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.TreeMap;

/** Writes everything that can be seen of an open log. */
final class StateWriter {
    private final JsonGenerator out;

    StateWriter(JsonGenerator out) {
        this.out = out;
    }

    void write(Replica replica) throws IOException, ProtocolError {
        UnifiedLog log = replica.log();
        ProducerStateManager producers = log.producerStateManager();
        out.writeStartObject();
        out.writeNumberField("log_start_offset", log.logStartOffset());
        out.writeNumberField("log_end_offset", log.logEndOffset());
        out.writeNumberField("high_watermark", log.highWatermark());
        out.writeNumberField("last_stable_offset", log.lastStableOffset());
        optional("first_unstable_offset", log.firstUnstableOffset().map(OptionalLong::of).orElse(OptionalLong.empty()));
        out.writeNumberField("recovery_point", log.recoveryPoint());
        out.writeNumberField("map_end_offset", producers.mapEndOffset());
        out.writeFieldName("producers");
        producers(producers.activeProducers().values());
        transactions("ongoing_transactions", Moved.ongoingTransactions(producers));
        transactions("unreplicated_transactions", Moved.unreplicatedTransactions(producers));
        verification(replica, Moved.verificationStates(producers));
        snapshots(replica);
        epochs(log.leaderEpochCache().epochEntries());
        segments(log.logSegments());
        out.writeEndObject();
    }

    private void producers(Collection<ProducerStateEntry> entries) throws IOException {
        List<ProducerStateEntry> sorted = new ArrayList<>(entries);
        sorted.sort(Comparator.comparingLong(ProducerStateEntry::producerId));
        out.writeStartArray();
        for (ProducerStateEntry entry : sorted) {
            out.writeStartObject();
            out.writeNumberField("producer_id", entry.producerId());
            out.writeNumberField("producer_epoch", entry.producerEpoch());
            out.writeNumberField("coordinator_epoch", entry.coordinatorEpoch());
            out.writeNumberField("last_timestamp", entry.lastTimestamp());
            optional("txn_first_offset", entry.currentTxnFirstOffset());
            out.writeArrayFieldStart("batches");
            for (BatchMetadata batch : entry.batchMetadata()) {
                out.writeStartObject();
                out.writeNumberField("base_sequence", batch.firstSeq());
                out.writeNumberField("last_sequence", batch.lastSeq());
                out.writeNumberField("base_offset", batch.firstOffset());
                out.writeNumberField("last_offset", batch.lastOffset());
                out.writeNumberField("timestamp", batch.timestamp());
                out.writeEndObject();
            }
            out.writeEndArray();
            out.writeEndObject();
        }
        out.writeEndArray();
    }

    private void transactions(String field, Map<?, ?> byFirstOffset) throws IOException {
        out.writeArrayFieldStart(field);
        for (Object value : byFirstOffset.values()) {
            TxnMetadata transaction = (TxnMetadata) value;
            out.writeStartObject();
            out.writeNumberField("producer_id", transaction.producerId);
            out.writeNumberField("first_offset", transaction.firstOffset.messageOffset);
            optional("last_offset", transaction.lastOffset);
            out.writeEndObject();
        }
        out.writeEndArray();
    }

    private void verification(Replica replica, Map<?, ?> byProducer) throws IOException {
        out.writeArrayFieldStart("verification");
        for (Map.Entry<?, ?> entry : new TreeMap<>(byProducer).entrySet()) {
            VerificationStateEntry state = (VerificationStateEntry) entry.getValue();
            out.writeStartObject();
            out.writeNumberField("producer_id", (Long) entry.getKey());
            out.writeNumberField("producer_epoch", state.epoch());
            out.writeNumberField("lowest_sequence", state.lowestSequence());
            out.writeBooleanField("epoch_bump", state.supportsEpochBump());
            out.writeNumberField("guard", replica.numberOf(state.verificationGuard()));
            out.writeEndObject();
        }
        out.writeEndArray();
    }

    private void snapshots(Replica replica) throws IOException {
        List<SnapshotFile> files = new ArrayList<>();
        // Kafka's own listing costs a tenth of a short trace, and most logs have no snapshot.
        if (LogFiles.hasNameEndingWith(replica.dir, ".snapshot")) {
            files.addAll(ProducerStateManager.listSnapshotFiles(replica.dir.toFile()));
        }
        files.sort(Comparator.comparingLong(file -> file.offset));
        out.writeArrayFieldStart("snapshots");
        for (SnapshotFile file : files) {
            out.writeStartObject();
            out.writeNumberField("offset", file.offset);
            List<ProducerStateEntry> entries = contents(file);
            out.writeFieldName("producers");
            if (entries == null) {
                out.writeNull();
            } else {
                producers(entries);
            }
            out.writeEndObject();
        }
        out.writeEndArray();
    }

    /** The entries of a snapshot; null if it cannot be read. */
    private static List<ProducerStateEntry> contents(SnapshotFile file) throws IOException {
        try {
            return ProducerStateManager.readSnapshot(file.file());
        } catch (RuntimeException e) {
            if (e instanceof CorruptRecordException || e.getClass().getSimpleName().equals("CorruptSnapshotException")) {
                return null;
            }
            throw e;
        }
    }

    private void epochs(List<EpochEntry> entries) throws IOException {
        out.writeArrayFieldStart("leader_epochs");
        for (EpochEntry entry : entries) {
            out.writeStartObject();
            out.writeNumberField("epoch", entry.epoch());
            out.writeNumberField("start_offset", entry.startOffset());
            out.writeEndObject();
        }
        out.writeEndArray();
    }

    private void segments(List<LogSegment> segments) throws IOException {
        out.writeArrayFieldStart("aborted_transactions");
        for (LogSegment segment : segments) {
            List<?> aborted = segment.txnIndex().allAbortedTxns();
            for (Object transaction : aborted) {
                out.writeStartObject();
                out.writeNumberField("producer_id", Moved.abortedNumber(transaction, "producerId"));
                out.writeNumberField("first_offset", Moved.abortedNumber(transaction, "firstOffset"));
                out.writeNumberField("last_offset", Moved.abortedNumber(transaction, "lastOffset"));
                out.writeNumberField("last_stable_offset", Moved.abortedNumber(transaction, "lastStableOffset"));
                out.writeEndObject();
            }
        }
        out.writeEndArray();
        out.writeArrayFieldStart("segments");
        for (LogSegment segment : segments) {
            out.writeStartObject();
            out.writeNumberField("base_offset", segment.baseOffset());
            out.writeNumberField("size", segment.size());
            out.writeEndObject();
        }
        out.writeEndArray();
    }

    private void optional(String field, OptionalLong value) throws IOException {
        if (value.isPresent()) {
            out.writeNumberField(field, value.getAsLong());
        } else {
            out.writeNullField(field);
        }
    }
}
