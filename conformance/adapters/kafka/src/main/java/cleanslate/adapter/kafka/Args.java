package cleanslate.adapter.kafka;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Set;

/**
 * The fields of a request or of an object in it, read strictly. An operation reads what it knows, calls {@link #end}, and only then acts: a
 * malformed request changes nothing.
 */
final class Args {
    private final JsonNode node;
    private final String where;
    private final Set<String> known = new HashSet<>();

    Args(JsonNode node, String where) throws ProtocolError {
        if (!node.isObject()) {
            throw ProtocolError.malformed(where + ": expected an object");
        }
        this.node = node;
        this.where = where;
    }

    /** Refuses fields that nobody has asked for. */
    void end() throws ProtocolError {
        for (Iterator<String> names = node.fieldNames(); names.hasNext(); ) {
            String name = names.next();
            if (!known.contains(name)) {
                throw ProtocolError.malformed(where + ": unknown field " + name);
            }
        }
    }

    /** The field, or null if it is absent or null. */
    private JsonNode find(String name) {
        known.add(name);
        JsonNode value = node.get(name);
        return value == null || value.isNull() ? null : value;
    }

    private JsonNode need(String name) throws ProtocolError {
        JsonNode value = find(name);
        if (value == null) {
            throw ProtocolError.malformed(where + ": field " + name + " is missing");
        }
        return value;
    }

    private ProtocolError expected(String name, String what) {
        return ProtocolError.malformed(where + ": field " + name + ": expected " + what);
    }

    boolean has(String name) {
        return find(name) != null;
    }

    long number(String name, long min, long max) throws ProtocolError {
        JsonNode value = need(name);
        if (!value.isIntegralNumber() || !value.canConvertToLong() || value.longValue() < min || value.longValue() > max) {
            throw expected(name, "an integer from " + min + " to " + max);
        }
        return value.longValue();
    }

    long number(String name, long min, long max, long otherwise) throws ProtocolError {
        return has(name) ? number(name, min, max) : otherwise;
    }

    long offset(String name) throws ProtocolError {
        return number(name, 0, Long.MAX_VALUE);
    }

    int int32(String name, int min) throws ProtocolError {
        return (int) number(name, min, Integer.MAX_VALUE);
    }

    boolean flag(String name, boolean otherwise) throws ProtocolError {
        return has(name) ? flag(name) : otherwise;
    }

    boolean flag(String name) throws ProtocolError {
        JsonNode value = need(name);
        if (!value.isBoolean()) {
            throw expected(name, "true or false");
        }
        return value.booleanValue();
    }

    String text(String name) throws ProtocolError {
        JsonNode value = need(name);
        if (!value.isTextual()) {
            throw expected(name, "a string");
        }
        return value.textValue();
    }

    String oneOf(String name, List<String> choices) throws ProtocolError {
        String value = text(name);
        if (!choices.contains(value)) {
            throw expected(name, "one of " + String.join(", ", choices));
        }
        return value;
    }

    byte[] bytes(String name) throws ProtocolError {
        return Hex.decode(where + ": field " + name, text(name));
    }

    List<String> texts(String name) throws ProtocolError {
        List<String> texts = new ArrayList<>();
        for (JsonNode item : items(name)) {
            if (!item.isTextual()) {
                throw expected(name, "an array of strings");
            }
            texts.add(item.textValue());
        }
        return texts;
    }

    List<Args> objects(String name) throws ProtocolError {
        List<Args> objects = new ArrayList<>();
        for (JsonNode item : items(name)) {
            objects.add(new Args(item, where + "." + name));
        }
        return objects;
    }

    /** The object in a field; an empty one if the field is absent. */
    Args object(String name) throws ProtocolError {
        JsonNode value = find(name);
        return new Args(value == null ? JsonNodeFactory.instance.objectNode() : value, where + "." + name);
    }

    private Iterable<JsonNode> items(String name) throws ProtocolError {
        JsonNode value = find(name);
        if (value == null) {
            return List.of();
        }
        if (!value.isArray()) {
            throw expected(name, "an array");
        }
        return value;
    }
}
