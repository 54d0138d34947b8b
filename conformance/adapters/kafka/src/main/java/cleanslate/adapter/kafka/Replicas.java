package cleanslate.adapter.kafka;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;

/** All logs of this process, by the names that the runner gave them, in one working directory. */
final class Replicas {
    private static final Pattern NAME = Pattern.compile("[A-Za-z0-9._-]{1,64}");
    private static final int MAX_LOGS = 1024;

    private final Path root;
    private final Map<String, Replica> byName = new LinkedHashMap<>();
    private long created;

    Replicas(Path root) {
        this.root = root;
    }

    static String nameIn(Args args) throws ProtocolError {
        String name = args.text("log");
        if (!NAME.matcher(name).matches()) {
            throw ProtocolError.malformed("field log: expected " + NAME.pattern());
        }
        return name;
    }

    Replica find(Args args) throws ProtocolError {
        String name = nameIn(args);
        Replica replica = byName.get(name);
        if (replica == null) {
            throw new ProtocolError("unknown-log", "there is no log " + name);
        }
        return replica;
    }

    Replica peek(String name) {
        return byName.get(name);
    }

    Replica create(String name, Settings settings, long nowMs) throws ProtocolError, IOException {
        if (byName.containsKey(name)) {
            throw new ProtocolError("log-exists", "there is a log " + name);
        }
        if (byName.size() >= MAX_LOGS) {
            throw new ProtocolError("too-many-logs", "there are " + byName.size() + " logs already");
        }
        // Kafka reads topic and partition from the directory's name; a topic of its own keeps the metrics of logs apart. A parent of its
        // own keeps a failure of one log from taking others offline.
        created++;
        Path dir = Files.createDirectories(root.resolve(Long.toString(created)).resolve("t" + created + "-0"));
        Replica replica = new Replica(name, dir, settings, nowMs);
        try {
            replica.open(true, 0, 0);
        } catch (IOException | RuntimeException e) {
            deleteTree(dir.getParent());
            throw e;
        }
        byName.put(name, replica);
        return replica;
    }

    void drop(Replica replica) throws IOException {
        byName.remove(replica.name);
        try {
            replica.abandon();
        } finally {
            deleteTree(replica.dir.getParent());
        }
    }

    void dropAll() throws IOException {
        for (Replica replica : new ArrayList<>(byName.values())) {
            drop(replica);
        }
    }

    /** Deletes a file, or a directory with all that is in it; links are not followed. Nothing happens if it is not there. */
    static void deleteTree(Path top) throws IOException {
        File[] children = Files.isSymbolicLink(top) ? null : top.toFile().listFiles();
        if (children != null) {
            for (File child : children) {
                // Most are plain files: what can be deleted at once needs no look at what it is.
                if (!child.delete()) {
                    deleteTree(child.toPath());
                }
            }
        }
        Files.deleteIfExists(top);
    }
}
