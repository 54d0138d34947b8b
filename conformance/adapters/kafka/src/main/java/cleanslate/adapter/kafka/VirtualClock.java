package cleanslate.adapter.kafka;

import org.apache.kafka.common.utils.Time;

import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/** The time of one log: it stands still unless a request moves it. */
final class VirtualClock implements Time {
    private long nowMs;

    VirtualClock(long nowMs) {
        this.nowMs = nowMs;
    }

    void set(long ms) {
        nowMs = ms;
    }

    @Override
    public long milliseconds() {
        return nowMs;
    }

    @Override
    public long nanoseconds() {
        return TimeUnit.MILLISECONDS.toNanos(nowMs);
    }

    /** Nothing may wait: what would have to pass by itself never does. */
    @Override
    public void sleep(long ms) {
    }

    @Override
    public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
        if (!condition.get()) {
            throw new IllegalStateException("waiting on a clock that stands still");
        }
    }
}
