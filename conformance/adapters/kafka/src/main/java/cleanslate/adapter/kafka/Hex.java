package cleanslate.adapter.kafka;

/** Bytes as lower-case hex, strictly. */
final class Hex {
    private static final char[] DIGITS = "0123456789abcdef".toCharArray();

    private Hex() {
    }

    static byte[] decode(String field, String text) throws ProtocolError {
        if (text.length() % 2 != 0) {
            throw ProtocolError.malformed(field + ": expected an even number of hex digits, found " + text.length());
        }
        byte[] bytes = new byte[text.length() / 2];
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] = (byte) (digit(field, text, 2 * i) << 4 | digit(field, text, 2 * i + 1));
        }
        return bytes;
    }

    private static int digit(String field, String text, int at) throws ProtocolError {
        char c = text.charAt(at);
        if (c >= '0' && c <= '9') {
            return c - '0';
        }
        if (c >= 'a' && c <= 'f') {
            return c - 'a' + 10;
        }
        throw ProtocolError.malformed(field + ": expected lower-case hex, found another character at position " + at);
    }

    static String encode(byte[] bytes) {
        char[] text = new char[bytes.length * 2];
        for (int i = 0; i < bytes.length; i++) {
            text[2 * i] = DIGITS[bytes[i] >> 4 & 15];
            text[2 * i + 1] = DIGITS[bytes[i] & 15];
        }
        return new String(text);
    }
}
