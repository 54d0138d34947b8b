package cleanslate.adapter.kafka;

import java.io.ByteArrayOutputStream;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * The adapter around Apache Kafka's own log classes: reads requests from stdin, writes replies to stdout, until {@code bye} or the end of the
 * input. The protocol is described in specs/adapter-protocol.md.
 */
public final class Main {
    /** The runner may name a directory for the logs, and deletes it itself; else one is made and deleted here. */
    private static final String DIRECTORY = "CLEANSLATE_ADAPTER_DIR";
    private static final int FLUSH_BYTES = 1 << 16;

    private Main() {
    }

    /** Takes no arguments. */
    public static void main(String[] args) throws IOException {
        OutputStream replies = new FileOutputStream(FileDescriptor.out);
        // Whatever else is printed in this process must not get between the replies.
        System.setOut(System.err);
        Path root = workingDirectory();
        try {
            converse(new Session(root), new Lines(new FileInputStream(FileDescriptor.in)), new Replies(replies));
        } finally {
            Replicas.deleteTree(root);
        }
    }

    private static Path workingDirectory() throws IOException {
        String given = System.getenv(DIRECTORY);
        if (given != null && !given.isEmpty()) {
            return Files.createTempDirectory(Path.of(given), "kafka-");
        }
        // A file system in memory: logs are created and synced some hundred times a second.
        Path memory = Path.of("/dev/shm");
        return Files.isWritable(memory) ? Files.createTempDirectory(memory, "cleanslate-kafka-") : Files.createTempDirectory("cleanslate-kafka-");
    }

    private static void converse(Session session, Lines lines, Replies replies) throws IOException {
        while (!session.isOver()) {
            if (!lines.isReady()) {
                replies.flush();
            }
            byte[] line;
            try {
                line = lines.next();
            } catch (ProtocolError e) {
                replies.add(session.lastWords(e));
                break;
            }
            if (line == null) {
                break;
            }
            replies.add(session.reply(line));
        }
        replies.flush();
    }

    /** Replies to requests that came together go out together. */
    private static final class Replies {
        private final OutputStream out;
        private final ByteArrayOutputStream pending = new ByteArrayOutputStream(2 * FLUSH_BYTES);

        Replies(OutputStream out) {
            this.out = out;
        }

        void add(byte[] line) throws IOException {
            pending.write(line);
            if (pending.size() >= FLUSH_BYTES) {
                flush();
            }
        }

        void flush() throws IOException {
            pending.writeTo(out);
            pending.reset();
            out.flush();
        }
    }
}
