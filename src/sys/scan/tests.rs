//! Escapees of every kind are found, and nobody else.

use super::*;
use crate::sys::child::Child;
use crate::sys::fd;
use crate::sys::feature::testing::deny;
use crate::sys::feature::Feature;
use crate::sys::poll::{deadline_after, wait_readable};
use crate::sys::spawn::{spawn, Command};
use std::ffi::CString;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::time::Duration;

const MARKER: &str = "PTC_RUN=scan-test";

/// A run: a leader that is a shell, tagged and marked, with a pipe as its output.
struct Run {
    child: Child,
    output: BufReader<File>,
}

impl Run {
    fn start(tag: Tag, script: &str) -> Run {
        let (read, write) = fd::pipe().unwrap();
        let stderr = fd::dup_high(std::os::fd::AsRawFd::as_raw_fd(&write)).unwrap();
        let mut command = Command::new(c"/bin/sh".into(), c"/".into(), write, stderr);
        command.argv.push(c"-c".into());
        command.argv.push(CString::new(script).unwrap());
        command.envp = vec![c"PATH=/usr/bin:/bin".into(), CString::new(MARKER).unwrap()];
        command.tag = Some(tag);
        Run {
            child: spawn(command).unwrap(),
            output: BufReader::new(File::from(read)),
        }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_string()
    }

    /// Kills the group, sweeps with `marker` or without, and waits until nobody holds the pipe.
    fn end(mut self, marker: Option<&[u8]>) -> Sweep {
        self.child.kill().unwrap();
        let sweep = sweep(
            &self.child.target(marker),
            deadline_after(Duration::from_secs(30)),
        );
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        self.child.reap();
        sweep
    }
}

fn new_tag() -> Tag {
    Tag::new(engine_tag(), random::u64().unwrap())
}

/// A shell word that leaves the group: a session of its own, orphaned, deaf to SIGTERM.
fn escapee(environment: &str) -> String {
    format!("(setsid env -i {environment} PATH=/usr/bin:/bin sh -c 'trap \"\" TERM; echo up; while :; do sleep 1000; done' &); wait")
}

#[test]
fn an_escapee_that_shed_all_but_its_limits_is_found() {
    let mut run = Run::start(new_tag(), &format!("{}; exec sleep 1000", escapee("")));
    assert_eq!(run.line(), "up");
    let sweep = run.end(None);
    assert!(sweep.killed >= 1);
    assert_eq!(sweep.survivors, Some(0));
}

#[test]
fn the_environment_marker_finds_what_has_no_tag() {
    let _without = deny(&[Feature::Tag]);
    let mut run = Run::start(new_tag(), &format!("{}; exec sleep 1000", escapee(MARKER)));
    assert_eq!(run.line(), "up");
    let sweep = run.end(Some(MARKER.as_bytes()));
    assert!(sweep.killed >= 1);
    assert_eq!(sweep.survivors, Some(0));
}

#[test]
fn nothing_is_found_by_a_part_of_the_marker() {
    let _without = deny(&[Feature::Tag]);
    let mut run = Run::start(new_tag(), &format!("{}; exec sleep 1000", escapee(MARKER)));
    assert_eq!(run.line(), "up");
    let part = &MARKER.as_bytes()[..MARKER.len() - 1];
    let target = run.child.target(Some(part));
    assert_eq!(sweep(&target, None).survivors, Some(0));
    run.end(Some(MARKER.as_bytes()));
}

#[test]
fn without_process_descriptors_the_same_is_found() {
    let _without = deny(&[Feature::Pidfd]);
    let mut run = Run::start(new_tag(), &format!("{}; exec sleep 1000", escapee("")));
    assert_eq!(run.line(), "up");
    assert_eq!(run.end(None).survivors, Some(0));
}

#[test]
fn other_runs_are_left_alone() {
    let mut one = Run::start(new_tag(), &format!("{}; exec sleep 1000", escapee("")));
    let mut other = Run::start(new_tag(), &format!("{}; exec sleep 1000", escapee("")));
    assert_eq!((one.line(), other.line()), ("up".into(), "up".into()));
    assert_eq!(one.end(None).survivors, Some(0));
    assert!(!other.child.has_exited());
    // Its escapee is still there, too.
    assert!(other.end(None).killed >= 1);
}

#[test]
fn a_bounded_fork_bomb_of_sessions_is_ended() {
    let bomb = "i=0; while [ $i -lt 60 ]; do (setsid sh -c 'sleep 1000 & sleep 1000 & wait' &); i=$((i+1)); done; echo up; exec sleep 1000";
    let mut run = Run::start(new_tag(), bomb);
    assert_eq!(run.line(), "up");
    // How many were still in the group, and so dead already, is a matter of luck.
    assert_eq!(run.end(None).survivors, Some(0));
}

#[test]
fn zombies_do_not_count() {
    // The inner shell ends at once and its parent, which left the group, never asks for it.
    let script = "(setsid sh -c 'sh -c \"exit 0\" & echo up; exec sleep 1000' &); exec sleep 1000";
    let mut run = Run::start(new_tag(), script);
    assert_eq!(run.line(), "up");
    assert_eq!(run.end(None).survivors, Some(0));
}

#[test]
fn where_nobody_can_look_nobody_knows() {
    let run = Run::start(new_tag(), "exec sleep 1000");
    let _without = deny(&[Feature::Proc]);
    let target = run.child.target(None);
    assert_eq!(sweep(&target, None), Sweep::BLIND);
    assert_eq!(sweep_orphans(None), Sweep::BLIND);
}

#[test]
fn tags_tell_hosts_and_runs_apart() {
    let engine = engine_tag();
    let tag = Tag::new(engine, 7);
    assert_ne!(tag, Tag::new(engine, 8));
    assert_eq!(Tag::host_of(tag.value()), Some(host::pid()));
    assert_eq!(
        Tag::host_of(Tag::new(engine, u64::MAX).value()),
        Some(host::pid())
    );
    for other in [0, 1, 1_000_000, u64::MAX, MAGIC - 1, MAGIC << 1, MAGIC] {
        assert_eq!(Tag::host_of(other), None, "{other:#x}");
    }
}

#[test]
fn what_outlived_its_host_is_swept_and_what_has_one_is_not() {
    // A host that is gone: a child of ours whose number stays taken until it is reaped, by its zombie.
    let mut gone = std::process::Command::new("true").spawn().unwrap();
    let orphaned = Tag(MAGIC | u64::from(gone.id()) << (SALT_BITS + RUN_BITS) | 5);
    gone.wait().unwrap();
    let orphan = Run::start(orphaned, "exec sleep 1000");
    let cared_for = Run::start(new_tag(), "exec sleep 1000");
    // Another engine of this machine may have been quicker, which is as well.
    let sweep = sweep_orphans(deadline_after(Duration::from_secs(30)));
    assert!(sweep.survivors.is_some());
    assert!(wait_readable(orphan.child.exit_fd(), None));
    assert!(!cared_for.child.has_exited());
}
