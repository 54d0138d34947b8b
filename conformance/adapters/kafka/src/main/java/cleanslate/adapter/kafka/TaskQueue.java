package cleanslate.adapter.kafka;

import org.apache.kafka.server.util.Scheduler;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Delayed;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;

/**
 * A scheduler without threads: tasks to be run once wait for a request to run them, whatever their delay. Periodic tasks (the expiration
 * check) are dropped, because a trace says itself when producers expire.
 */
final class TaskQueue implements Scheduler {
    /** More tasks in one run than a trace can cause mean a task that schedules itself for ever. */
    private static final int MAX_RUN = 100_000;

    private final Deque<Task> tasks = new ArrayDeque<>();

    @Override
    public void startup() {
    }

    @Override
    public void shutdown() {
        tasks.clear();
    }

    @Override
    public void resizeThreadPool(int newSize) {
    }

    @Override
    public ScheduledFuture<?> schedule(String name, Runnable run, long delayMs, long periodMs) {
        Task task = new Task(name, run);
        if (periodMs < 0) {
            tasks.add(task);
        }
        return task;
    }

    /** Runs all tasks, also those that they schedule, in order; returns their names. */
    List<String> runAll() {
        List<String> names = new ArrayList<>();
        for (Task task = tasks.poll(); task != null; task = tasks.poll()) {
            if (names.size() == MAX_RUN) {
                throw new IllegalStateException("tasks schedule tasks without end: " + task.name);
            }
            if (!task.isCancelled()) {
                names.add(task.name);
                task.run.run();
            }
        }
        return names;
    }

    private static final class Task extends CompletableFuture<Void> implements ScheduledFuture<Void> {
        private final String name;
        private final Runnable run;

        Task(String name, Runnable run) {
            this.name = name;
            this.run = run;
        }

        @Override
        public long getDelay(TimeUnit unit) {
            return 0;
        }

        @Override
        public int compareTo(Delayed other) {
            return 0;
        }
    }
}
