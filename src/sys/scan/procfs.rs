//! What `/proc` and `prlimit` tell of foreign processes.

use std::fs;
use std::io;
use std::path::PathBuf;

use crate::sys::fd::check;

/// A line of `/proc/<pid>/stat`, as far as it matters here (proc(5)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: i32,
    state: u8,
    pub(super) parent: i32,
    pub(super) group: i32,
    pub(super) session: i32,
    threads: u32,
    /// Clock ticks since the machine started. Together with the pid it is never another's.
    pub(super) start: u64,
}

impl Process {
    /// False for one that has ended and waits for its parent to notice. A process whose first thread has ended while
    /// others go on looks like a zombie, too, but has more than one thread.
    pub(super) fn is_alive(&self) -> bool {
        !matches!(self.state, b'Z' | b'X') || self.threads > 1
    }
}

/// Every process that there is, also zombies.
pub(super) fn pids() -> io::Result<Vec<i32>> {
    let names =
        fs::read_dir("/proc")?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    Ok(names.filter_map(|name| name.parse().ok()).collect())
}

/// `None` for one that is gone.
pub(super) fn process(pid: i32) -> Option<Process> {
    parse_stat(pid, &fs::read(path(pid, "stat")).ok()?)
}

fn parse_stat(pid: i32, stat: &[u8]) -> Option<Process> {
    // The name is the process's own choice and may contain anything, also parentheses and line breaks.
    let after_name = stat.iter().rposition(|b| *b == b')')? + 2;
    let text = std::str::from_utf8(stat.get(after_name..)?).ok()?;
    let fields: Vec<&str> = text.split_ascii_whitespace().collect();
    // The first of these is field 3 of the line.
    let field = |number: usize| fields.get(number - 3).copied();
    Some(Process {
        pid,
        state: *field(3)?.as_bytes().first()?,
        parent: field(4)?.parse().ok()?,
        group: field(5)?.parse().ok()?,
        session: field(6)?.parse().ok()?,
        threads: field(20)?.parse().ok()?,
        start: field(22)?.parse().ok()?,
    })
}

/// Whether the environment that the process was started with has `marker` as one of its entries.
pub(super) fn has_marker(pid: i32, marker: &[u8]) -> bool {
    let environment = fs::read(path(pid, "environ")).unwrap_or_default();
    environment.split(|b| *b == 0).any(|entry| entry == marker)
}

/// The soft `RLIMIT_RTTIME` of the process, in which tags are.
pub(super) fn rttime_limit(pid: i32) -> Option<u64> {
    let mut limit = libc::rlimit64 {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: reads only; `limit` is what the call writes for a NULL new limit.
    let read = unsafe { libc::prlimit64(pid, libc::RLIMIT_RTTIME, std::ptr::null(), &mut limit) };
    match check(read) {
        Ok(_) => Some(limit.rlim_cur),
        // Another user's, as after a setuid program: its limits can still be read.
        Err(_) => limit_in(&fs::read_to_string(path(pid, "limits")).ok()?),
    }
}

fn limit_in(limits: &str) -> Option<u64> {
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max realtime timeout"))?;
    line.split_ascii_whitespace().nth(3)?.parse().ok()
}

/// The number that was given to a process or thread last, in our pid namespace.
pub(super) fn last_pid() -> Option<i32> {
    let line = fs::read_to_string("/proc/loadavg").ok()?;
    line.split_ascii_whitespace().nth(4)?.parse().ok()
}

/// Whether the process lives in our own pid namespace, so that numbers mean the same to it and to us.
pub(super) fn shares_our_pids(pid: i32) -> bool {
    let ours = fs::read_link("/proc/self/ns/pid");
    let theirs = fs::read_link(path(pid, "ns/pid"));
    matches!((ours, theirs), (Ok(ours), Ok(theirs)) if ours == theirs)
}

fn path(pid: i32, file: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/{file}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_forge_the_fields_behind_it() {
        let line = b"12 (a) Z 1 (\n) S 1 2 3 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 7 0 4242 1 1\n";
        let found = parse_stat(12, line).unwrap();
        assert_eq!((found.state, found.parent), (b'S', 1));
        assert_eq!((found.group, found.session), (2, 3));
        assert_eq!((found.threads, found.start), (7, 4242));
        assert_eq!(parse_stat(12, b"12 (a"), None);
        assert_eq!(parse_stat(12, b""), None);
    }

    #[test]
    fn a_zombie_with_threads_lives() {
        let process = |state: &str, threads: u32| {
            let line = format!("9 (x) {state} 1 2 3 0 -1 0 0 0 0 0 0 0 0 0 20 0 {threads} 0 5 1 1");
            parse_stat(9, line.as_bytes()).unwrap()
        };
        assert!(process("R", 1).is_alive() && process("D", 1).is_alive());
        assert!(process("Z", 2).is_alive());
        assert!(!process("Z", 1).is_alive() && !process("X", 0).is_alive());
    }

    #[test]
    fn this_process_is_seen_as_it_is() {
        let own = process(std::process::id() as i32).unwrap();
        assert!(own.is_alive());
        // SAFETY: no arguments.
        assert_eq!(own.session, unsafe { libc::getsid(0) });
        assert!(pids().unwrap().contains(&own.pid));
        assert!(shares_our_pids(own.pid));
        let from_file = limit_in(&fs::read_to_string("/proc/self/limits").unwrap());
        assert_eq!(
            from_file.unwrap_or(u64::MAX),
            rttime_limit(own.pid).unwrap()
        );
    }
}
