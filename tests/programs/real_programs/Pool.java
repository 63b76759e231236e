import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.locks.ReentrantLock;

/** Sums in a thread pool, under monitors and locks; prints them in order. */
public class Pool {
    private static long shared;

    public static void main(String[] arguments) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(4);
        CountDownLatch begun = new CountDownLatch(4);
        ReentrantLock lock = new ReentrantLock();
        List<Future<Long>> sums = new ArrayList<>();
        for (int job = 0; job < 40; job++) {
            final int base = job;
            sums.add(pool.submit(() -> {
                // The first four jobs have a thread each.
                begun.countDown();
                begun.await();
                long sum = 0;
                for (int i = 0; i < 1000; i++) {
                    sum += (long) base * i;
                    synchronized (Pool.class) {
                        shared++;
                    }
                    lock.lock();
                    try {
                        shared++;
                    } finally {
                        lock.unlock();
                    }
                }
                return sum;
            }));
        }
        for (Future<Long> sum : sums) {
            System.out.println(sum.get());
        }
        pool.shutdown();
        System.exit(7);
    }
}
