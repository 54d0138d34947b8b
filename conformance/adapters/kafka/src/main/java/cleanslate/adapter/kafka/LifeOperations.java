package cleanslate.adapter.kafka;

import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The life of a log: created, stopped, crashed, opened again, dropped; and its files. */
final class LifeOperations {
    private final Replicas replicas;

    LifeOperations(Replicas replicas, Map<String, Operation> operations) {
        this.replicas = replicas;
        operations.put("create", this::create);
        operations.put("open", this::open);
        operations.put("close", this::close);
        operations.put("crash", this::crash);
        operations.put("drop", this::drop);
        operations.put("reset", this::reset);
        operations.put("state", this::state);
        operations.put("files", this::files);
        operations.put("put-file", this::putFile);
    }

    private Answer create(Args args) throws ProtocolError, IOException {
        String name = Replicas.nameIn(args);
        long nowMs = args.offset("now_ms");
        Args config = args.object("config");
        args.end();
        replicas.create(name, Settings.read(config), nowMs);
        return Answer.DONE;
    }

    private Answer open(Args args) throws ProtocolError, IOException {
        Replica replica = replicas.find(args);
        replica.requireClosed();
        boolean clean = args.flag("clean");
        long recoveryPoint = args.number("recovery_point", 0, Long.MAX_VALUE, 0);
        long logStart = args.number("log_start", 0, Long.MAX_VALUE, 0);
        long nowMs = args.number("now_ms", 0, Long.MAX_VALUE, replica.clock.milliseconds());
        args.end();
        replica.clock.set(nowMs);
        replica.open(clean, logStart, recoveryPoint);
        return Answer.DONE;
    }

    private Answer close(Args args) throws ProtocolError {
        Replica replica = replicas.find(args);
        args.end();
        replica.close();
        return Answer.DONE;
    }

    /** Everything is checked before the crash, so that a refused request leaves the log open. A cut applies before files are lost. */
    private Answer crash(Args args) throws ProtocolError, IOException {
        Replica replica = replicas.find(args);
        replica.log();
        LogFiles files = new LogFiles(replica.dir);
        Map<String, Long> cuts = new LinkedHashMap<>();
        for (Args cut : args.objects("cuts")) {
            String file = cut.text("file");
            long bytes = cut.offset("bytes");
            cut.end();
            files.requireExisting(file);
            cuts.put(file, bytes);
        }
        List<String> lost = new ArrayList<>();
        for (String pattern : args.texts("lost")) {
            lost.addAll(files.matching(pattern));
        }
        args.end();
        replica.abandon();
        for (Map.Entry<String, Long> cut : cuts.entrySet()) {
            files.cut(cut.getKey(), cut.getValue());
        }
        for (String file : lost) {
            files.delete(file);
        }
        return Answer.DONE;
    }

    private Answer drop(Args args) throws ProtocolError, IOException {
        Replica replica = replicas.find(args);
        args.end();
        replicas.drop(replica);
        return Answer.DONE;
    }

    private Answer reset(Args args) throws ProtocolError, IOException {
        args.end();
        replicas.dropAll();
        return Answer.DONE;
    }

    /** The reply carries the state because this operation's name asks for it. */
    private Answer state(Args args) throws ProtocolError {
        replicas.find(args).log();
        args.end();
        return Answer.DONE;
    }

    private Answer files(Args args) throws ProtocolError, IOException {
        Replica replica = replicas.find(args);
        boolean content = args.flag("content", false);
        args.end();
        List<LogFiles.Entry> entries = new LogFiles(replica.dir).list();
        return out -> {
            out.writeArrayFieldStart("files");
            for (LogFiles.Entry entry : entries) {
                out.writeStartObject();
                out.writeStringField("name", entry.name());
                out.writeNumberField("size", entry.bytes().length);
                out.writeStringField("sha256", entry.sha256());
                if (content) {
                    out.writeStringField("content", Hex.encode(entry.bytes()));
                }
                out.writeEndObject();
            }
            out.writeEndArray();
        };
    }

    private Answer putFile(Args args) throws ProtocolError, IOException {
        Replica replica = replicas.find(args);
        replica.requireClosed();
        String file = args.text("file");
        byte[] content = args.bytes("content");
        args.end();
        new LogFiles(replica.dir).write(file, content);
        return Answer.DONE;
    }
}
