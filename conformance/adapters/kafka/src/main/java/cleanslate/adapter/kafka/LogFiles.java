package cleanslate.adapter.kafka;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** The files of one log, by plain name: what survives a crash is decided here. */
final class LogFiles {
    private static final Pattern NAME = Pattern.compile("[A-Za-z0-9][A-Za-z0-9._-]{0,127}");

    /** A file with its whole content. */
    record Entry(String name, byte[] bytes, String sha256) {
    }

    private final Path dir;

    LogFiles(Path dir) {
        this.dir = dir;
    }

    List<Entry> list() throws IOException {
        List<Entry> entries = new ArrayList<>();
        for (String name : names()) {
            byte[] bytes = Files.readAllBytes(dir.resolve(name));
            entries.add(new Entry(name, bytes, sha256(bytes)));
        }
        return entries;
    }

    private List<String> names() throws IOException {
        try (Stream<Path> files = Files.list(dir)) {
            return files.filter(Files::isRegularFile).map(file -> file.getFileName().toString()).sorted().toList();
        }
    }

    /** Whether there is a file, or a directory, whose name ends so. */
    static boolean hasNameEndingWith(Path dir, String end) {
        String[] names = dir.toFile().list();
        return names != null && Arrays.stream(names).anyMatch(name -> name.endsWith(end));
    }

    void requireExisting(String name) throws ProtocolError {
        if (!Files.isRegularFile(path(name))) {
            throw new ProtocolError("unknown-file", "there is no file " + name);
        }
    }

    /** The files of this name; with a star in front, all whose name ends with the rest, which may be none. */
    List<String> matching(String pattern) throws ProtocolError, IOException {
        if (pattern.startsWith("*")) {
            String end = pattern.substring(1);
            return names().stream().filter(name -> name.endsWith(end)).toList();
        }
        requireExisting(pattern);
        return List.of(pattern);
    }

    /** Takes bytes off the end of a file; all of it if it has fewer. */
    void cut(String name, long bytes) throws IOException, ProtocolError {
        try (FileChannel file = FileChannel.open(path(name), StandardOpenOption.WRITE)) {
            file.truncate(Math.max(0, file.size() - bytes));
        }
    }

    void delete(String name) throws IOException, ProtocolError {
        Files.deleteIfExists(path(name));
    }

    void write(String name, byte[] content) throws IOException, ProtocolError {
        Files.write(path(name), content);
    }

    private Path path(String name) throws ProtocolError {
        if (!NAME.matcher(name).matches()) {
            throw ProtocolError.malformed("expected the plain name of a file");
        }
        return dir.resolve(name);
    }

    private static String sha256(byte[] bytes) {
        try {
            return Hex.encode(MessageDigest.getInstance("SHA-256").digest(bytes));
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException(e);
        }
    }
}
