package cleanslate.adapter.kafka;

import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;

import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** The configuration of a log: what the protocol's {@code config} says, in Kafka's words. */
final class Settings {
    /** Equal configurations share one object: building a {@link LogConfig} costs more than creating a log's files in memory. */
    private static final Map<Map<String, Object>, LogConfig> BUILT = new HashMap<>();
    private static final int MAX_BUILT = 256;

    private static final long DAY_MS = 86_400_000;

    final LogConfig log;
    final ProducerStateManagerConfig producers;
    final int maxTransactionTimeoutMs;

    private Settings(LogConfig log, ProducerStateManagerConfig producers, int maxTransactionTimeoutMs) {
        this.log = log;
        this.producers = producers;
        this.maxTransactionTimeoutMs = maxTransactionTimeoutMs;
    }

    static Settings read(Args args) throws ProtocolError {
        int expirationMs = (int) args.number("producer_expiration_ms", 1, Integer.MAX_VALUE, DAY_MS);
        int timeoutMs = (int) args.number("max_transaction_timeout_ms", 1, Integer.MAX_VALUE, 900_000);
        boolean verification = args.flag("verification", false);
        Map<String, Object> topic = topic(args);
        args.end();
        if (BUILT.size() >= MAX_BUILT) {
            BUILT.clear();
        }
        LogConfig log = BUILT.computeIfAbsent(topic, LogConfig::new);
        return new Settings(log, new ProducerStateManagerConfig(expirationMs, verification), timeoutMs);
    }

    private static Map<String, Object> topic(Args args) throws ProtocolError {
        Map<String, Object> topic = new HashMap<>();
        // The public name of the segment size refuses less than a mebibyte; the internal one is meant for tests.
        topic.put("internal.segment.bytes", (int) args.number("segment_bytes", 1, Integer.MAX_VALUE, 1 << 30));
        // Index files are allocated at this size at once; a small default keeps the copies of crash images cheap.
        topic.put("segment.index.bytes", (int) args.number("index_bytes", 4, Integer.MAX_VALUE, 4096));
        topic.put("index.interval.bytes", (int) args.number("index_interval_bytes", 0, Integer.MAX_VALUE, 4096));
        topic.put("segment.ms", args.number("segment_ms", 1, Long.MAX_VALUE, 7 * DAY_MS));
        topic.put("max.message.bytes", (int) args.number("max_message_bytes", 0, Integer.MAX_VALUE, 1 << 20));
        topic.put("retention.ms", args.number("retention_ms", -1, Long.MAX_VALUE, -1));
        topic.put("retention.bytes", args.number("retention_bytes", -1, Long.MAX_VALUE, -1));
        topic.put("delete.retention.ms", args.number("delete_retention_ms", 0, Long.MAX_VALUE, DAY_MS));
        topic.put("cleanup.policy", args.has("cleanup_policy")
            ? args.oneOf("cleanup_policy", List.of("delete", "compact", "compact,delete")) : "delete");
        topic.put("message.timestamp.type", args.has("timestamp_type")
            ? args.oneOf("timestamp_type", List.of("CreateTime", "LogAppendTime")) : "CreateTime");
        // Jitter would be random, and the clock of a log may be far from its records' timestamps.
        topic.put("segment.jitter.ms", 0L);
        topic.put("message.timestamp.after.max.ms", Long.MAX_VALUE);
        topic.put("message.timestamp.before.max.ms", Long.MAX_VALUE);
        return topic;
    }
}
