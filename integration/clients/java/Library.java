import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** One version of a library, and what it has. */
abstract class Library {
  static final String HOST = System.getenv("PROXY_HOST");
  static final int PORT = Integer.parseInt(System.getenv("PROXY_PORT"));

  static final String RELEASE =
      "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";
  static final String DOUBLE = "return redis.call('incrby', KEYS[1], redis.call('get', KEYS[1]))";
  static final String EXTEND =
      "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) else return 0 end";

  final String name;
  final String version;
  boolean tells = true; // release says whether the lock was still held
  boolean extended = true; // it can be extended
  boolean tokens; // the caller chooses the token
  boolean reentrant;
  long watchdogMs; // TTL of a lock that is kept; 0: it has no watchdog

  Library(String name, String artifact) {
    this.name = name;
    Matcher m = Pattern.compile("/" + artifact + "-([0-9][^/]*)\\.jar").matcher(System.getProperty("java.class.path"));
    version = m.find() ? m.group(1).replace(".RELEASE", "") : "unknown";
  }

  abstract Client open() throws Exception;

  /** What else this library has; run after the scenario "release". */
  void more(Scenarios run) throws Exception {}

  interface Client extends AutoCloseable {
    /** A null token is one that the library makes. keep: the library's watchdog keeps the lock. */
    Lock lock(String name, long ttlMs, byte[] token, boolean keep) throws Exception;

    /** Uses everything else that the library has, under names that begin with name; piped names a lock. */
    default void data(Used used, String name, String piped) throws Exception {
      throw new Scenarios.Absent();
    }
  }

  /** What was used, each of which must have given what is wanted. */
  static class Used {
    final List<String> all = new ArrayList<>();

    void step(String what, Object got, Object wanted) {
      want(String.valueOf(got).equals(String.valueOf(wanted)), what + ": " + got);
      all.add(what);
    }
  }

  /** False means that somebody else has the lock, or that it is not held. Everything else is an exception. */
  interface Lock {
    boolean acquire(long waitMs) throws Exception;

    boolean release() throws Exception;

    boolean extend(long ttlMs) throws Exception;
  }

  interface Act {
    boolean go() throws Exception;
  }

  /** Calls act until it returns true or the wait is over. */
  static boolean poll(long waitMs, Act act) throws Exception {
    long end = System.nanoTime() + waitMs * 1_000_000;
    while (!act.go()) {
      if (System.nanoTime() >= end) {
        return false;
      }
      Thread.sleep(50);
    }
    return true;
  }

  static void want(boolean condition, String what) {
    if (!condition) {
      throw new AssertionError(what);
    }
  }
}
