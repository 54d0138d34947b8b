package cleanslate.adapter.kafka;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.StreamReadFeature;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;

/** One conversation with the runner: takes a request line, gives the reply line.. */
final class Session {
    private static final int PROTOCOL = 1;
    private static final List<String> FEATURES = List.of("compaction", "crash-files", "leader-epochs", "segments", "snapshots",
        "transaction-index", "transaction-verification", "virtual-time");

    private final ObjectMapper mapper = new ObjectMapper(
        JsonFactory.builder().enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION).build());
    private final Map<String, Operation> operations = new TreeMap<>();
    private final Replicas replicas;
    private boolean greeted;
    private boolean over;

    Session(Path root) {
        mapper.enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS);
        replicas = new Replicas(root);
        operations.put("hello", this::hello);
        operations.put("bye", this::bye);
        new LifeOperations(replicas, operations);
        new AppendOperations(replicas, operations);
        new OffsetOperations(replicas, operations);
        new UpkeepOperations(replicas, operations);
    }

    /** True once the runner has said goodbye. */
    boolean isOver() {
        return over;
    }

    /** The reply to a line, with its line feed. */
    byte[] reply(byte[] line) throws IOException {
        Request request = new Request();
        try {
            request.read(mapper, line);
            Answer answer = perform(request);
            return write(request, out -> {
                out.writeObjectFieldStart("ok");
                answer.write(out);
                out.writeEndObject();
            });
        } catch (ProtocolError e) {
            return write(request, error("protocol", e.code(), e.getMessage()));
        } catch (VirtualMachineError e) {
            throw e;
        } catch (Throwable e) {
            Throwable cause = unwrap(e);
            return write(request, error("exception", cause.getClass().getSimpleName(), cause.getMessage()));
        }
    }

    /** The reply to input that is no line of the protocol, after which nothing can be understood any more. */
    byte[] lastWords(ProtocolError e) throws IOException {
        return write(new Request(), error("protocol", e.code(), e.getMessage()));
    }

    private Answer perform(Request request) throws Exception {
        Operation operation = operations.get(request.op);
        if (operation == null) {
            throw new ProtocolError("unknown-operation", "there is no operation " + request.op);
        }
        if (!greeted && !request.op.equals("hello")) {
            throw new ProtocolError("no-hello", "the first request has to be hello");
        }
        return operation.run(request.args);
    }

    /** A refusal of a single record is wrapped by Kafka; the reason is what the client would be told. */
    private static Throwable unwrap(Throwable e) {
        boolean wrapped = e.getClass().getSimpleName().equals("RecordValidationException") && e.getCause() != null;
        return wrapped ? e.getCause() : e;
    }

    private static Answer error(String kind, String name, String message) {
        return out -> {
            out.writeObjectFieldStart("error");
            out.writeStringField("kind", kind);
            out.writeStringField("name", name);
            out.writeStringField("message", message == null ? "" : message);
            out.writeEndObject();
        };
    }

    private byte[] write(Request request, Answer content) throws IOException {
        try {
            return render(request, content, stateAsked(request));
        } catch (ProtocolError | IOException | RuntimeException e) {
            // The operation took place, but the adapter cannot tell what came of it.
            return renderPlain(request, error("internal", e.getClass().getSimpleName(), e.getMessage()));
        }
    }

    private Replica stateAsked(Request request) {
        Replica replica = request.wantsState ? replicas.peek(request.log) : null;
        return replica != null && replica.isOpen() ? replica : null;
    }

    private byte[] renderPlain(Request request, Answer content) throws IOException {
        try {
            return render(request, content, null);
        } catch (ProtocolError e) {
            throw new IOException(e);
        }
    }

    private byte[] render(Request request, Answer content, Replica shown) throws IOException, ProtocolError {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream(1024);
        try (JsonGenerator out = mapper.getFactory().createGenerator(bytes)) {
            out.writeStartObject();
            if (request.id == null) {
                out.writeNullField("id");
            } else {
                out.writeNumberField("id", request.id);
            }
            out.writeStringField("op", request.op);
            content.write(out);
            if (shown != null) {
                out.writeFieldName("state");
                new StateWriter(out).write(shown);
            }
            out.writeEndObject();
        }
        bytes.write('\n');
        return bytes.toByteArray();
    }

    private Answer hello(Args args) throws ProtocolError, IOException {
        long protocol = args.number("protocol", 1, Integer.MAX_VALUE);
        args.text("runner");
        args.end();
        if (protocol != PROTOCOL) {
            throw new ProtocolError("unsupported-protocol", "this adapter speaks protocol " + PROTOCOL);
        }
        greeted = true;
        Properties kafka = kafkaVersion();
        return out -> {
            out.writeNumberField("protocol", PROTOCOL);
            out.writeStringField("name", "apache-kafka");
            out.writeStringField("version", kafka.getProperty("version", "unknown"));
            out.writeStringField("build", kafka.getProperty("commitId", "unknown"));
            out.writeArrayFieldStart("operations");
            for (String name : operations.keySet()) {
                out.writeString(name);
            }
            out.writeEndArray();
            out.writeArrayFieldStart("features");
            for (String feature : FEATURES) {
                out.writeString(feature);
            }
            out.writeEndArray();
        };
    }

    /** What the jar of the clients says of itself; all of Kafka's jars are of one version. */
    private static Properties kafkaVersion() throws IOException {
        Properties properties = new Properties();
        try (InputStream file = Session.class.getResourceAsStream("/kafka/kafka-version.properties")) {
            if (file != null) {
                properties.load(file);
            }
        }
        return properties;
    }

    private Answer bye(Args args) throws ProtocolError, IOException {
        args.end();
        replicas.dropAll();
        over = true;
        return Answer.DONE;
    }

    /** The fields that all requests share. Those that could be read before an error are told back. */
    private static final class Request {
        private Long id;
        private String op;
        private String log;
        private boolean wantsState;
        private Args args;

        void read(ObjectMapper mapper, byte[] line) throws ProtocolError {
            JsonNode node;
            try {
                node = mapper.readTree(line);
            } catch (JsonProcessingException e) {
                throw ProtocolError.malformed("not JSON: " + e.getOriginalMessage());
            } catch (IOException e) {
                throw ProtocolError.malformed("not JSON: " + e.getMessage());
            }
            args = new Args(node, "request");
            id = args.number("id", 0, Long.MAX_VALUE);
            op = args.text("op");
            wantsState = args.flag("state", false) || op.equals("state");
            log = args.has("log") ? args.text("log") : null;
        }
    }
}
