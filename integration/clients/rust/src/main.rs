//! One client of a library; see ../go/remote. The argument says which: redis-0, redis-1 or rslock.

mod rslocks;

use std::collections::HashMap;
use std::env;
use std::io::{self, BufRead, Write};
use std::time::{Duration, Instant};

const RELEASE: &str =
    r#"if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end"#;
const EXTEND: &str =
    r#"if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("pexpire",KEYS[1],ARGV[2]) else return 0 end"#;

type Answer = Result<bool, String>;

trait Library {
    fn lock(&mut self, id: &str, name: &str, ttl: u64, token: Vec<u8>) -> Answer;
    fn acquire(&mut self, id: &str, wait: u64) -> Answer;
    fn release(&mut self, id: &str) -> Answer;
    fn extend(&mut self, id: &str, ttl: u64) -> Answer;

    /// Uses everything else that the library has, and returns what it has used.
    fn data(&mut self, _name: &str, _piped: &str) -> Result<String, String> {
        Err("there is nothing".to_string())
    }
}

const DOUBLE: &str = r#"return redis.call("incrby", KEYS[1], redis.call("get", KEYS[1]))"#;

fn step<T: PartialEq + std::fmt::Debug>(used: &mut Vec<&'static str>, what: &'static str, got: T, wanted: T) -> Result<(), String> {
    if got != wanted {
        return Err(format!("{what}: {got:?}"));
    }
    used.push(what);
    Ok(())
}

fn address() -> String {
    format!("redis://{}:{}/", env::var("PROXY_HOST").unwrap(), env::var("PROXY_PORT").unwrap())
}

struct Hand {
    name: String,
    ttl: u64,
    token: Vec<u8>,
}

/// redis-rs, by commands. Its versions are different crates with the same names in them.
macro_rules! by_hand {
    ($module:ident, $redis:ident) => {
        mod $module {
            use super::*;
            use $redis::{Client, Commands, Connection, ConnectionLike, Script};

            pub struct Locks {
                client: Client,
                connection: Option<Connection>,
                locks: HashMap<String, Hand>,
            }

            impl Locks {
                pub fn new() -> Self {
                    let client = Client::open(address()).expect("the address of the proxy");
                    Locks { client, connection: None, locks: HashMap::new() }
                }

                /// Returns a connection that is open, as far as is known.
                fn connect(&mut self) -> Result<&mut Connection, String> {
                    if !self.connection.as_ref().is_some_and(|c| c.is_open()) {
                        self.connection = Some(self.client.get_connection().map_err(|e| e.to_string())?);
                    }
                    Ok(self.connection.as_mut().unwrap())
                }

                fn script(&mut self, text: &str, id: &str, more: &str) -> Answer {
                    let (name, token) = (self.locks[id].name.clone(), self.locks[id].token.clone());
                    let script = Script::new(text); // EVALSHA, and SCRIPT LOAD on NOSCRIPT
                    let reply: Result<i64, _> = script.key(name).arg(token).arg(more).invoke(self.connect()?);
                    reply.map(|n| n == 1).map_err(|e| e.to_string())
                }

                fn set(&mut self, id: &str) -> Answer {
                    let Hand { name, ttl, token } = &self.locks[id];
                    let (name, ttl, token) = (name.clone(), *ttl, token.clone());
                    let mut set = $redis::cmd("SET");
                    set.arg(&name).arg(&token).arg("NX").arg("PX").arg(ttl);
                    let connection = self.connect()?;
                    let granted: Option<String> = set.query(connection).map_err(|e| e.to_string())?;
                    if granted.is_some() {
                        let value: Vec<u8> = connection.get(&name).map_err(|e| e.to_string())?;
                        if value != token {
                            return Err("GET tells another token".to_string());
                        }
                    }
                    Ok(granted.is_some())
                }
            }

            impl Library for Locks {
                fn lock(&mut self, id: &str, name: &str, ttl: u64, token: Vec<u8>) -> Answer {
                    self.locks.insert(id.to_string(), Hand { name: name.to_string(), ttl, token });
                    Ok(true)
                }

                fn acquire(&mut self, id: &str, wait: u64) -> Answer {
                    let end = Instant::now() + Duration::from_millis(wait);
                    loop {
                        let granted = self.set(id)?;
                        if granted || Instant::now() >= end {
                            return Ok(granted);
                        }
                        std::thread::sleep(Duration::from_millis(50));
                    }
                }

                fn release(&mut self, id: &str) -> Answer {
                    self.script(RELEASE, id, "")
                }

                fn extend(&mut self, id: &str, ttl: u64) -> Answer {
                    self.script(EXTEND, id, &ttl.to_string())
                }

                fn data(&mut self, name: &str, piped: &str) -> Result<String, String> {
                    let mut used = Vec::new();
                    let key = |s: &str| format!("{name}:{s}");
                    let mut listening = self.client.get_connection().map_err(why)?;
                    let c = self.connection.as_mut().unwrap(); // the lock is held over it
                    c.mset::<_, _, ()>(&[(key("text"), "one"), (key("number"), "2")]).map_err(why)?;
                    let got: (String, i64) = c.mget(&[key("text"), key("number")]).map_err(why)?;
                    step(&mut used, "strings", got, ("one".to_string(), 2))?;
                    c.hset::<_, _, _, ()>(key("fields"), "a", 1).map_err(why)?;
                    let got: HashMap<String, i64> = c.hgetall(key("fields")).map_err(why)?;
                    step(&mut used, "hash", got, HashMap::from([("a".to_string(), 1)]))?;
                    c.rpush::<_, _, ()>(key("items"), &["x", "y"]).map_err(why)?;
                    let got: Vec<String> = c.lrange(key("items"), 0, -1).map_err(why)?;
                    step(&mut used, "list", got, vec!["x".to_string(), "y".to_string()])?;
                    let nothing: Option<(String, String)> = c.blpop(key("queue"), 1.0).map_err(why)?;
                    c.rpush::<_, _, ()>(key("queue"), "z").map_err(why)?;
                    let popped: Option<(String, String)> = c.blpop(key("queue"), 1.0).map_err(why)?;
                    step(&mut used, "BLPOP", (nothing, popped), (None, Some((key("queue"), "z".to_string()))))?;
                    let got: (i64, i64) = $redis::transaction(c, &[key("number")], |c, p| {
                        p.incr(key("number"), 1).hincr(key("fields"), "a", 1).query(c)
                    })
                    .map_err(why)?;
                    step(&mut used, "WATCH, MULTI", got, (3, 2))?;
                    let mut set = $redis::cmd("SET");
                    set.arg(piped).arg("t").arg("NX").arg("PX").arg(30000);
                    let mut pipe = $redis::pipe();
                    pipe.set(key("text"), "two").add_command(set).get(key("text")).del(piped);
                    let got: (String, String, String, i64) = pipe.query(c).map_err(why)?;
                    step(&mut used, "pipeline", (got.2.as_str(), got.3), ("two", 1))?;
                    let mut listener = listening.as_pubsub();
                    listener.subscribe(key("news")).map_err(why)?;
                    c.publish::<_, _, ()>(key("news"), "hello").map_err(why)?;
                    let got: String = listener.get_message().map_err(why)?.get_payload().map_err(why)?;
                    step(&mut used, "pub/sub", got.as_str(), "hello")?;
                    let mut page = $redis::cmd("SCAN");
                    page.arg(0).arg("MATCH").arg(key("num*")).arg("COUNT").arg(1000);
                    let got: (String, Vec<String>) = page.query(c).map_err(why)?;
                    step(&mut used, "SCAN", got.1, vec![key("number")])?;
                    let got: i64 = Script::new(DOUBLE).key(key("number")).invoke(c).map_err(why)?;
                    step(&mut used, "scripts", got, 6)?;
                    Ok(used.join(", "))
                }
            }

            fn why(e: $redis::RedisError) -> String {
                e.to_string()
            }
        }
    };
}

by_hand!(zero, redis_0);
by_hand!(one, redis_1);

/// A token for a lock that has none: no two clients are one process.
fn token_of(word: &str, id: &str) -> Vec<u8> {
    match word.strip_prefix('x') {
        None => format!("{}-{}", std::process::id(), id).into_bytes(),
        Some(hex) => (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap()).collect(),
    }
}

fn main() -> io::Result<()> {
    let (mut library, ready): (Box<dyn Library>, &str) = match env::args().nth(1).as_deref() {
        Some("redis-0") => (Box::new(zero::Locks::new()), "0.25.5 extends tokens data"),
        Some("redis-1") => (Box::new(one::Locks::new()), "1.8.1 extends tokens data"),
        _ => (Box::new(rslocks::Locks::new()), "0.10.0 extends mute"),
    };
    let mut out = io::stdout();
    writeln!(out, "ready {ready}")?;
    out.flush()?;
    for line in io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split(' ').collect();
        if words[0] == "data" {
            match library.data(words[1], words[2]) {
                Ok(used) => writeln!(out, "used {used}")?,
                Err(why) => writeln!(out, "error {}", why.replace(['\r', '\n'], " "))?,
            }
            out.flush()?;
            continue;
        }
        let number = |i: usize| words[i].parse::<u64>().expect("a number");
        let answer = match words[0] {
            "lock" => library.lock(words[1], words[2], number(3), token_of(words[4], words[1])),
            "acquire" => library.acquire(words[1], number(2)),
            "release" => library.release(words[1]),
            _ => library.extend(words[1], number(2)),
        };
        match answer {
            Ok(yes) => writeln!(out, "{}", if yes { "yes" } else { "no" })?,
            Err(why) => writeln!(out, "error {}", why.replace(['\r', '\n'], " "))?,
        }
        out.flush()?;
    }
    Ok(())
}
