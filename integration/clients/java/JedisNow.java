import java.util.ArrayList;
import java.util.List;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.params.ScanParams;
import redis.clients.jedis.params.SetParams;
import redis.clients.jedis.resps.ScanResult;

/** Jedis 4 and later. */
class JedisNow extends JedisLocks {
  public static void main(String[] args) throws Exception {
    Scenarios.run(new JedisNow());
  }

  String set(Jedis jedis, byte[] name, byte[] token, long ttlMs) {
    return jedis.set(name, token, SetParams.setParams().nx().px(ttlMs));
  }

  List<String> scan(Jedis jedis, String pattern) {
    List<String> found = new ArrayList<>();
    String cursor = "0";
    do {
      ScanResult<String> page = jedis.scan(cursor, new ScanParams().match(pattern));
      found.addAll(page.getResult());
      cursor = page.getCursor();
    } while (!cursor.equals("0"));
    return found;
  }
}
