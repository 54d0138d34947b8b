package cleanslate.adapter.kafka;

/** An operation of the protocol: reads its fields, calls {@link Args#end}, acts, and says what came out. */
@FunctionalInterface
interface Operation {
    Answer run(Args args) throws Exception;
}
