package cleanslate.adapter.kafka;

import java.io.IOException;
import java.io.InputStream;
import java.util.Arrays;

/** Lines of an input stream, of bounded length. Tells whether the next line is there already, so that replies can be flushed before waiting. */
final class Lines {
    /** The longest line of the protocol, without its line feed. */
    static final int MAX_BYTES = 16 << 20;

    private final InputStream in;
    private byte[] buffer = new byte[1 << 16];
    private int start;
    private int end;
    /** No line feed lies between {@code start} and here. */
    private int searched;

    Lines(InputStream in) {
        this.in = in;
    }

    /** True if {@link #next} will not have to wait for input. */
    boolean isReady() {
        while (searched < end && buffer[searched] != '\n') {
            searched++;
        }
        return searched < end;
    }

    /** The next line without its line feed; null at the end of the input, where an unfinished line is dropped. */
    byte[] next() throws IOException, ProtocolError {
        while (!isReady()) {
            if (end - start > MAX_BYTES) {
                throw ProtocolError.malformed("a line has more than " + MAX_BYTES + " bytes");
            }
            makeRoom();
            int read = in.read(buffer, end, buffer.length - end);
            if (read < 0) {
                return null;
            }
            end += read;
        }
        byte[] line = Arrays.copyOfRange(buffer, start, searched);
        start = searched + 1;
        searched = start;
        return line;
    }

    private void makeRoom() {
        if (end < buffer.length) {
            return;
        }
        byte[] target = end - start > buffer.length / 2 ? new byte[buffer.length * 2] : buffer;
        System.arraycopy(buffer, start, target, 0, end - start);
        searched -= start;
        end -= start;
        start = 0;
        buffer = target;
    }
}
