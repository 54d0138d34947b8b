package cleanslate.adapter.kafka;

import com.fasterxml.jackson.core.JsonGenerator;

import java.io.IOException;

/** What an operation has to tell, written into the object that the reply carries. */
@FunctionalInterface
interface Answer {
    /** An operation without anything to tell. */
    Answer DONE = out -> { };

    void write(JsonGenerator out) throws IOException;
}
