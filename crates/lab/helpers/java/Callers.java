import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * Threads for calls that block. What a call's end leads to runs in the same thread, one after the other,
 * as in a program whose users have a thread each: no hand-over stands between two calls of a user.
 */
final class Callers implements Executor, AutoCloseable {
    private static final class Next {
        Runnable task;
    }

    private final ThreadLocal<Next> next = new ThreadLocal<>();
    private final ExecutorService threads;

    /** More than {@code most} calls at once are refused. */
    Callers(int most) {
        threads = new ThreadPoolExecutor(0, most, 10, TimeUnit.SECONDS, new SynchronousQueue<>());
    }

    @Override
    public void execute(Runnable task) {
        Next mine = next.get();
        if (mine != null && mine.task == null) {
            mine.task = task;
        } else {
            threads.execute(() -> inTurn(task));
        }
    }

    private void inTurn(Runnable first) {
        Next mine = new Next();
        next.set(mine);
        for (Runnable task = first; task != null; task = mine.task) {
            mine.task = null;
            task.run();
        }
        next.remove();
    }

    @Override
    public void close() {
        threads.shutdownNow();
    }
}
