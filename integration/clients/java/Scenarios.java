import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.Socket;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/** What every library is put through: one object is one scenario of one library. */
class Scenarios {
  static final long LONG = 30_000; // ms: a TTL that no scenario outlives
  static final long SHORT = 3_000; // a TTL that a scenario waits for
  static final long SOON = 20_000; // within which what must happen happens, on a busy machine

  static class Absent extends Exception {}

  interface Scenario {
    void act(Scenarios run) throws Exception;
  }

  static final Map<String, Scenario> ALL = new LinkedHashMap<>();

  static {
    ALL.put("take", Scenarios::take);
    ALL.put("refuse", Scenarios::refuse);
    ALL.put("release", Scenarios::release);
    ALL.put("stranger", Scenarios::stranger);
    ALL.put("extend", Scenarios::extend);
    ALL.put("expiry", Scenarios::expiry);
    ALL.put("wait", Scenarios::waiting);
    ALL.put("lost", Scenarios::lost);
    ALL.put("no quorum", Scenarios::noQuorum);
    ALL.put("minority", Scenarios::minority);
    ALL.put("re-entrance", Scenarios::reentrance);
    ALL.put("watchdog", Scenarios::watchdog);
    ALL.put("binary token", Scenarios::binaryToken);
    ALL.put("reconnect", Scenarios::reconnect);
    ALL.put("data", Scenarios::data);
  }

  final Library library;
  final String key;
  final List<Library.Client> clients = new ArrayList<>();
  final Library.Used used = new Library.Used();

  Scenarios(Library library, String name) {
    this.library = library;
    this.key = ("lock:" + library.name + ":" + library.version + ":" + name).replace(' ', '-');
  }

  /** Puts the libraries through all scenarios, prints the results and ends the program. */
  static void run(Library... libraries) throws Exception {
    List<String> wanted = List.of(System.getenv("SCENARIOS").split(","));
    for (Library l : libraries) {
      if (l.name.contains(System.getenv().getOrDefault("LIBRARIES", ""))) {
        for (Map.Entry<String, Scenario> s : ALL.entrySet()) {
          if (wanted.contains(s.getKey())) {
            run(l, s.getKey(), s.getValue());
          }
        }
      }
    }
    System.exit(0); // some libraries leave threads behind
  }

  private static void run(Library l, String name, Scenario s) {
    Scenarios run = new Scenarios(l, name);
    String result = "ok";
    String why = "";
    try {
      ask("reset");
      s.act(run);
    } catch (Absent e) {
      result = "absent";
    } catch (Throwable e) {
      result = "failed";
      why = e.toString();
      e.printStackTrace();
    }
    for (Library.Client c : run.clients) {
      try {
        c.close();
      } catch (Exception e) {
        e.printStackTrace();
      }
    }
    why = why.replace('"', '\'').replaceAll("[\\\\\\p{Cntrl}]", " ");
    System.out.printf("{\"library\":\"%s\",\"version\":\"%s\",\"scenario\":\"%s\",\"result\":\"%s\",\"why\":\"%s\",\"used\":\"%s\"}%n",
        l.name, l.version, name, result, why, String.join(", ", run.used.all));
  }

  /** Sends a wish to the control port and waits until it is done. */
  static void ask(String wish) throws Exception {
    try (Socket s = new Socket("127.0.0.1", Integer.parseInt(System.getenv("CONTROL_PORT")))) {
      s.getOutputStream().write((wish + "\n").getBytes());
      String answer = new BufferedReader(new InputStreamReader(s.getInputStream())).readLine();
      Library.want("ok".equals(answer), wish + ": " + answer);
    }
  }

  /** Polls until act returns true. Exceptions count as false, but the last one is told. */
  static void until(String what, Library.Act act) throws Exception {
    Exception[] last = new Exception[1];
    boolean done = Library.poll(SOON, () -> {
      last[0] = null;
      try {
        return act.go();
      } catch (Exception e) {
        last[0] = e;
        return false;
      }
    });
    Library.want(done, what + ": not within " + SOON + " ms: " + last[0]);
  }

  /** Demands that act is refused: it returns false or throws. */
  static void fails(String what, Library.Act act) {
    boolean succeeded;
    try {
      succeeded = act.go();
    } catch (Exception e) {
      return;
    }
    Library.want(!succeeded, what + " succeeded");
  }

  Library.Client client() throws Exception {
    Library.Client c = library.open();
    clients.add(c);
    return c;
  }

  /** A lock of a client of its own. */
  Library.Lock lock(long ttlMs) throws Exception {
    return lockNamed(key, ttlMs);
  }

  Library.Lock lockNamed(String name, long ttlMs) throws Exception {
    return client().lock(name, ttlMs, null, false);
  }

  static void granted(String what, Library.Lock lock) throws Exception {
    Library.want(lock.acquire(0), what + ": not granted");
  }

  static void refused(String what, Library.Lock lock) throws Exception {
    Library.want(!lock.acquire(0), what + ": granted");
  }

  static void released(Library.Lock lock) throws Exception {
    Library.want(lock.release(), "not released");
  }

  void take() throws Exception {
    Library.Lock lock = lock(LONG);
    granted("take", lock);
    ask("held");
    released(lock);
  }

  void refuse() throws Exception {
    granted("take", lock(LONG));
    Library.Lock other = lock(LONG);
    for (int i = 0; i < 3; i++) {
      refused("take it again", other);
    }
  }

  void release() throws Exception {
    Library.Lock first = lock(LONG);
    Library.Lock second = lock(LONG);
    for (Library.Lock l : List.of(first, second, first)) {
      granted("take", l);
      released(l);
      ask("empty");
    }
    library.more(this);
  }

  void stranger() throws Exception {
    Library.Lock late = lock(SHORT);
    Library.Lock holder = lock(LONG);
    granted("take", late);
    until("the next holder", () -> holder.acquire(0));
    fails("the release of a stranger", () -> late.release() && library.tells);
    refused("take it from its holder", lock(LONG));
    released(holder);
  }

  void extend() throws Exception {
    if (!library.extended) {
      throw new Absent();
    }
    Library.Lock lock = lock(SHORT);
    long start = System.nanoTime();
    granted("take", lock);
    Library.want(lock.extend(LONG), "not extended");
    Thread.sleep(Math.max(0, SHORT + 500 - (System.nanoTime() - start) / 1_000_000));
    refused("take it after the first TTL", lock(LONG));
    released(lock);
  }

  void expiry() throws Exception {
    Library.Lock first = lock(SHORT);
    Library.Lock other = lock(LONG);
    long start = System.nanoTime();
    granted("take", first);
    until("the next holder", () -> other.acquire(0));
    Library.want(System.nanoTime() - start >= SHORT * 1_000_000, "granted before the TTL was over");
    released(other);
  }

  void waiting() throws Exception {
    Library.Lock lock = lock(LONG);
    Library.Lock other = lock(LONG);
    granted("take", lock);
    CompletableFuture<Long> waiter = CompletableFuture.supplyAsync(() -> {
      try {
        Library.want(other.acquire(LONG / 2), "the waiter was not granted");
        long at = System.nanoTime();
        released(other); // some libraries bind a lock to its thread
        return at;
      } catch (Exception e) {
        throw new IllegalStateException(e);
      }
    });
    Thread.sleep(500); // most probably it waits by now; if not, it is granted at once, rightly
    long released = System.nanoTime();
    released(lock);
    long at = waiter.get(LONG, TimeUnit.MILLISECONDS);
    Library.want(at >= released, "the waiter was granted before the release");
    Library.want(at - released < SOON * 1_000_000, "the waiter was granted late");
  }

  void lost() throws Exception {
    Library.Lock lock = lock(LONG);
    granted("take", lock);
    ask("lose");
    if (library.extended) {
      fails("extending a lost lock", () -> lock.extend(LONG));
    }
    fails("releasing a lost lock", () -> lock.release() && library.tells);
    granted("the next", lock(LONG));
  }

  void noQuorum() throws Exception {
    Library.Lock held = lock(LONG);
    Library.Lock other = lockNamed(key + ":other", LONG);
    Library.Lock third = lockNamed(key + ":third", LONG);
    granted("take", held);
    ask("down 2");
    long start = System.nanoTime();
    fails("taking without a quorum", () -> other.acquire(0));
    Library.want(System.nanoTime() - start < SOON * 1_000_000, "refused late");
    fails("releasing without a quorum", () -> held.release() && library.tells);
    ask("up");
    until("taking with the quorum back", () -> third.acquire(0));
  }

  void minority() throws Exception {
    ask("down 1");
    Library.Lock lock = lock(LONG);
    Library.Lock other = lock(LONG);
    granted("take", lock);
    refused("take it again", other);
    released(lock);
    granted("the next", other);
    released(other);
  }

  void reentrance() throws Exception {
    if (!library.reentrant) {
      throw new Absent();
    }
    Library.Lock lock = lock(LONG);
    Library.Lock other = lock(LONG);
    granted("take", lock);
    granted("take it again", lock);
    released(lock);
    refused("take it after one release of two", other);
    released(lock);
    granted("the next", other);
    released(other);
    ask("empty");
  }

  void watchdog() throws Exception {
    if (library.watchdogMs == 0) {
      throw new Absent();
    }
    Library.Lock lock = client().lock(key, library.watchdogMs, null, true);
    Library.Lock other = lock(LONG);
    granted("take", lock);
    for (long end = System.nanoTime() + 3 * library.watchdogMs * 1_000_000; System.nanoTime() < end; ) {
      refused("take it while the watchdog runs", other);
      Thread.sleep(100);
    }
    released(lock);
    until("the next holder", () -> other.acquire(0));
  }

  void binaryToken() throws Exception {
    if (!library.tokens) {
      throw new Absent();
    }
    byte[] bytes = new byte[262];
    for (int i = 0; i < 256; i++) {
      bytes[i] = (byte) i;
    }
    System.arraycopy("$-1\r\n".getBytes(), 0, bytes, 256, 5);
    for (byte[] token : List.of(bytes, new byte[0])) {
      Library.Lock lock = client().lock(key, LONG, token, false);
      Library.Lock other = client().lock(key, LONG, "other".getBytes(), false);
      granted("take", lock);
      refused("take it again", other);
      fails("release with another token", other::release);
      Library.want(lock.extend(LONG), "not extended");
      released(lock);
      ask("empty");
    }
  }

  void data() throws Exception {
    Library.Client client = client();
    Library.Lock lock = client.lock(key, LONG, null, false);
    granted("take", lock);
    client.data(used, key.replace("lock:", "data:"), key + ":piped");
    ask("held");
    ask("apart");
    released(lock);
    ask("empty");
  }

  void reconnect() throws Exception {
    Library.Client holder = client();
    Library.Lock lock = holder.lock(key, LONG, null, false);
    Library.Lock probe = holder.lock(key + ":probe", LONG, null, false);
    Library.Lock again = lock(LONG);
    granted("take", lock);
    refused("take it again", again);
    ask("restart");
    until("an answer", () -> probe.acquire(0));
    until("an answer", () -> !again.acquire(0));
    until("the release", lock::release); // another connection of the client may have to find out first
    until("the next", () -> again.acquire(0));
    until("its release", again::release);
  }
}
