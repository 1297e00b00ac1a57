import java.time.Duration;
import java.time.Instant;
import java.util.Optional;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.LockProvider;
import net.javacrumbs.shedlock.core.SimpleLock;
import net.javacrumbs.shedlock.provider.redis.spring.RedisLockProvider;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;

/** ShedLock over Spring Data Redis, as it is by default and with updates that check the holder. */
class ShedLocks extends Library {
  final boolean safe;

  ShedLocks(String name, boolean safe) {
    super(name, "shedlock-provider-redis-spring");
    this.safe = safe;
    tells = false;
  }

  public static void main(String[] args) throws Exception {
    Scenarios.run(new ShedLocks("ShedLock", false), new ShedLocks("ShedLock, safeUpdate", true));
  }

  Client open() {
    LettuceConnectionFactory factory = Factory.make();
    LockProvider provider = new RedisLockProvider.Builder(factory).safeUpdate(safe).build();
    return new Client() {
      public Lock lock(String name, long ttlMs, byte[] token, boolean keep) {
        return new Provided(provider, name, Duration.ofMillis(ttlMs));
      }

      public void close() {
        factory.destroy();
      }
    };
  }

  static class Provided implements Lock {
    final LockProvider provider;
    final String name;
    final Duration ttl;
    SimpleLock held;

    Provided(LockProvider provider, String name, Duration ttl) {
      this.provider = provider;
      this.name = name;
      this.ttl = ttl;
    }

    public boolean acquire(long waitMs) throws Exception {
      return poll(waitMs, () -> keep(provider.lock(new LockConfiguration(Instant.now(), name, ttl, Duration.ZERO))));
    }

    public boolean release() {
      held.unlock();
      return true;
    }

    public boolean extend(long ttlMs) {
      return keep(held.extend(Duration.ofMillis(ttlMs), Duration.ZERO));
    }

    private boolean keep(Optional<SimpleLock> lock) {
      lock.ifPresent(l -> held = l);
      return lock.isPresent();
    }
  }
}
