import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.locks.ReentrantLock;

/** Counts the words of made-up texts in a thread pool, into one table under a monitor and one counter under a lock. */
public class Pool {
    private static final java.util.TreeMap<Long, Integer> table = new java.util.TreeMap<>();
    private static long shared;

    private static long count(int job, ReentrantLock lock) {
        long word = job + 1, sum = 0;
        for (int i = 0; i < 20000; i++) {
            StringBuilder text = new StringBuilder();
            for (int letter = 0; letter < 12; letter++) {
                word = word * 6364136223846793005L + 1442695040888963407L;
                text.append((char) ('a' + (word >>> 60)));
            }
            sum += text.toString().hashCode();
            if (i % 20 == 0) {
                synchronized (table) {
                    table.merge(sum & 1023, 1, Integer::sum);
                }
                lock.lock();
                try {
                    shared += sum;
                } finally {
                    lock.unlock();
                }
            }
        }
        return sum;
    }

    public static void main(String[] arguments) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(4);
        ReentrantLock lock = new ReentrantLock();
        List<Future<Long>> sums = new ArrayList<>();
        for (int job = 0; job < 120; job++) {
            final int number = job;
            sums.add(pool.submit(() -> count(number, lock)));
        }
        long all = 0;
        for (Future<Long> sum : sums) {
            all += sum.get();
        }
        pool.shutdown();
        System.out.println(all + shared);
    }
}
