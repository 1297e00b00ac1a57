import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.redisson.Redisson;
import org.redisson.RedissonMultiLock;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/**
 * How many times a second threads take and release locks of their own: RLock through lockproxy, and RedissonMultiLock,
 * which is what became of RedissonRedLock, over the same masters.
 */
class RedissonSpeed {
  static final int ROUNDS = 3;
  static final long ROUND_MS = 3_000;

  interface Locks {
    RLock lock(String name);
  }

  public static void main(String[] args) throws Exception {
    int threads = Integer.parseInt(args[0]);
    RedissonClient proxy = open(Library.HOST + ":" + Library.PORT, threads);
    List<RedissonClient> masters = new ArrayList<>();
    for (String address : System.getenv("MASTERS").split(",")) {
      masters.add(open(address, threads));
    }
    Locks through = proxy::getLock;
    Locks direct = name -> new RedissonMultiLock(masters.stream().map(m -> m.getLock(name)).toArray(RLock[]::new));
    double[] lockproxy = new double[ROUNDS];
    double[] multi = new double[ROUNDS];
    round(through, threads, "warm"); // the compiler's
    round(direct, threads, "warm");
    for (int i = 0; i < ROUNDS; i++) {
      lockproxy[i] = round(through, threads, "proxy");
      multi[i] = round(direct, threads, "direct");
    }
    Arrays.sort(lockproxy);
    Arrays.sort(multi);
    double a = lockproxy[ROUNDS / 2];
    double b = multi[ROUNDS / 2];
    System.out.printf("Redisson %d threads: RLock through lockproxy %.0f pairs/s, RedissonMultiLock over the same %d masters "
        + "%.0f pairs/s, ratio %.2f%n", threads, a, masters.size(), b, a / b);
    System.exit(0);
  }

  static RedissonClient open(String address, int threads) {
    Config config = new Config();
    config.useSingleServer().setAddress("redis://" + address).setConnectionMinimumIdleSize(threads).setConnectionPoolSize(threads);
    return Redisson.create(config);
  }

  /** Pairs a second. A lock that is not granted, though it is nobody else's, ends the program. */
  static double round(Locks locks, int threads, String prefix) throws Exception {
    AtomicLong pairs = new AtomicLong();
    long start = System.nanoTime();
    long end = start + ROUND_MS * 1_000_000;
    List<Thread> all = new ArrayList<>();
    for (int i = 0; i < threads; i++) {
      RLock lock = locks.lock("speed:" + prefix + ":" + i);
      all.add(new Thread(() -> {
        try {
          while (System.nanoTime() < end) {
            Library.want(lock.tryLock(-1, 30_000, TimeUnit.MILLISECONDS), "not granted");
            lock.unlock();
            pairs.incrementAndGet();
          }
        } catch (InterruptedException e) {
          throw new IllegalStateException(e);
        } catch (RuntimeException | AssertionError e) {
          e.printStackTrace();
          System.exit(1);
        }
      }));
    }
    all.forEach(Thread::start);
    for (Thread t : all) {
      t.join();
    }
    return pairs.get() * 1e9 / (System.nanoTime() - start);
  }
}
