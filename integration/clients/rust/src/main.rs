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
        Some("redis-0") => (Box::new(zero::Locks::new()), "0.25.5 extends tokens"),
        Some("redis-1") => (Box::new(one::Locks::new()), "1.8.1 extends tokens"),
        _ => (Box::new(rslocks::Locks::new()), "0.10.0 extends mute"),
    };
    let mut out = io::stdout();
    writeln!(out, "ready {ready}")?;
    out.flush()?;
    for line in io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split(' ').collect();
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
