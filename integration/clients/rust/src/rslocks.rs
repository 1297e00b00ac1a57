//! rslock, with the proxy as its one server.

use std::collections::HashMap;
use std::time::Duration;

use rslock::{Lock, LockError, LockManager};
use tokio::runtime::Runtime;

use super::{address, Answer, Library};

pub struct Locks {
    runtime: Runtime,
    trying: LockManager,
    waiting: LockManager,
    wanted: HashMap<String, (String, u64)>,
    held: HashMap<String, Lock>,
}

impl Locks {
    pub fn new() -> Self {
        let mut trying = LockManager::new(vec![address()]);
        trying.set_retry(1, Duration::from_millis(50));
        let mut waiting = LockManager::new(vec![address()]);
        waiting.set_retry(600, Duration::from_millis(50));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        Locks { runtime, trying, waiting, wanted: HashMap::new(), held: HashMap::new() }
    }

    fn keep(&mut self, id: &str, result: Result<Lock, LockError>) -> Answer {
        match result {
            Ok(lock) => {
                self.held.insert(id.to_string(), lock);
                Ok(true)
            }
            Err(LockError::Unavailable) => Ok(false), // this library's word for errors of the server, too
            Err(e) => Err(e.to_string()),
        }
    }
}

impl Library for Locks {
    fn lock(&mut self, id: &str, name: &str, ttl: u64, _token: Vec<u8>) -> Answer {
        self.wanted.insert(id.to_string(), (name.to_string(), ttl));
        Ok(true)
    }

    fn acquire(&mut self, id: &str, wait: u64) -> Answer {
        let (name, ttl) = self.wanted[id].clone();
        let manager = if wait == 0 { &self.trying } else { &self.waiting };
        let result = self.runtime.block_on(manager.lock(name.as_bytes(), Duration::from_millis(ttl)));
        self.keep(id, result)
    }

    fn release(&mut self, id: &str) -> Answer {
        self.runtime.block_on(self.trying.unlock(&self.held[id]));
        Ok(true)
    }

    fn extend(&mut self, id: &str, ttl: u64) -> Answer {
        let result = self.runtime.block_on(self.trying.extend(&self.held[id], Duration::from_millis(ttl)));
        self.keep(id, result)
    }
}
