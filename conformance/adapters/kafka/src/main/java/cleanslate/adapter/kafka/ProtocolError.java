package cleanslate.adapter.kafka;

/** A request that cannot be carried out as a request: malformed, unknown, or out of order. It has changed nothing. */
final class ProtocolError extends Exception {
    private static final long serialVersionUID = 1L;

    private final String code;

    ProtocolError(String code, String message) {
        super(message);
        this.code = code;
    }

    /** One of the codes of the protocol, e.g. {@code unknown-operation}. */
    String code() {
        return code;
    }

    static ProtocolError malformed(String message) {
        return new ProtocolError("malformed", message);
    }
}
