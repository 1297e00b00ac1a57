import java.util.ArrayList;
import java.util.List;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.ScanParams;
import redis.clients.jedis.ScanResult;

/** Jedis 2. */
class JedisTwo extends JedisLocks {
  public static void main(String[] args) throws Exception {
    Scenarios.run(new JedisTwo());
  }

  String set(Jedis jedis, byte[] name, byte[] token, long ttlMs) {
    return jedis.set(name, token, "NX".getBytes(), "PX".getBytes(), ttlMs);
  }

  List<String> scan(Jedis jedis, String pattern) {
    List<String> found = new ArrayList<>();
    String cursor = "0";
    do {
      ScanResult<String> page = jedis.scan(cursor, new ScanParams().match(pattern));
      found.addAll(page.getResult());
      cursor = page.getStringCursor();
    } while (!cursor.equals("0"));
    return found;
  }
}
