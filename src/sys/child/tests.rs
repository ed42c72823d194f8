//! The end of a process, seen by every means that there is, and signals that meet nobody else.

use super::*;
use crate::sys::fd;
use crate::sys::feature::testing::deny;
use crate::sys::feature::Feature;
use crate::sys::spawn::{spawn, Command};
use std::ffi::CString;
use std::io::Read as _;

/// With process descriptors, without the newest uses of them, and with a waiting thread in their place.
const LADDERS: [&[Feature]; 3] = [
    &[],
    &[Feature::PidfdGroup, Feature::PidfdInfo],
    &[Feature::Pidfd],
];

fn start(script: &str) -> (Child, std::fs::File) {
    let (read, write) = fd::pipe().unwrap();
    let stderr = fd::dup_high(write.as_raw_fd()).unwrap();
    let mut command = Command::new(c"/bin/sh".into(), c"/".into(), write, stderr);
    command.argv.push(c"-c".into());
    command.argv.push(CString::new(script).unwrap());
    command.envp = vec![c"PATH=/usr/bin:/bin".into()];
    (spawn(command).unwrap(), std::fs::File::from(read))
}

/// Everything up to the end of file, which comes when the last process that holds the pipe is gone.
fn rest(mut pipe: std::fs::File) -> String {
    let mut text = String::new();
    pipe.read_to_string(&mut text).unwrap();
    text
}

fn wait_for(pipe: &mut std::fs::File, word: &str) {
    let mut found = vec![0; word.len()];
    pipe.read_exact(&mut found).unwrap();
    assert_eq!(found, word.as_bytes());
}

fn wait_for_end(child: &Child) {
    assert!(wait_readable(child.exit_fd(), None));
}

#[test]
fn the_end_and_how_it_came_are_told() {
    for features in LADDERS {
        let _without = deny(features);
        for (script, expected) in [
            ("exit 0", ExitStatus::Exited(0)),
            ("exit 255", ExitStatus::Exited(255)),
            ("kill -9 $$", ExitStatus::Signaled(9)),
            ("kill -15 $$", ExitStatus::Signaled(15)),
        ] {
            let (child, _pipe) = start(script);
            wait_for_end(&child);
            assert!(child.has_exited() && child.is_unreaped());
            assert_eq!(child.reap(), expected, "without {features:?}");
        }
    }
}

#[test]
fn a_running_child_has_not_exited() {
    for features in LADDERS {
        let _without = deny(features);
        let (child, mut pipe) = start("echo up; exec sleep 1000");
        wait_for(&mut pipe, "up\n");
        assert!(!child.has_exited() && child.is_unreaped());
        assert_eq!(child.reap(), ExitStatus::Signaled(9));
    }
}

#[test]
fn signals_reach_the_whole_group_also_after_its_leader() {
    for features in LADDERS {
        let _without = deny(features);
        let (child, mut pipe) = start("sleep 1000 & echo up; exit 3");
        wait_for(&mut pipe, "up\n");
        wait_for_end(&child);
        child.kill().unwrap();
        assert_eq!(rest(pipe), "");
        assert_eq!(child.reap(), ExitStatus::Exited(3));
    }
}

#[test]
fn a_stopped_group_gets_to_its_termination() {
    for features in LADDERS {
        let _without = deny(features);
        let (child, mut pipe) = start(
            "trap 'echo bye; exit 4' TERM; echo up; kill -STOP $$; echo on; while :; do :; done",
        );
        wait_for(&mut pipe, "up\n");
        child.terminate().unwrap();
        let text = rest(pipe);
        assert!(text.ends_with("bye\n"), "{text}");
        wait_for_end(&child);
        assert_eq!(child.reap(), ExitStatus::Exited(4));
    }
}

#[test]
fn a_dropped_child_is_killed_and_reaped() {
    for features in LADDERS {
        let _without = deny(features);
        let (child, mut pipe) = start("sleep 1000 & echo up; wait");
        wait_for(&mut pipe, "up\n");
        let pid = child.pid();
        drop(child);
        assert_eq!(rest(pipe), "");
        assert!(!wait::is_our_child(pid));
    }
}

#[test]
fn a_host_that_reaps_everything_costs_no_more_than_the_status() {
    for features in LADDERS {
        let _without = deny(features);
        let (child, pipe) = start("exit 5");
        let pid = child.pid();
        assert_eq!(rest(pipe), "");
        // The waiting thread sees the end before or after the host takes it away; either is right.
        let _ = wait::wait(libc::P_PID, pid as libc::id_t, 0);
        wait_for_end(&child);
        assert!(child.has_exited());
        // The number may be a stranger's by now: nothing must be sent to it.
        child.kill().unwrap();
        let status = child.reap();
        let known = [ExitStatus::Exited(5), ExitStatus::Unknown];
        assert!(known.contains(&status), "{status:?} without {features:?}");
    }
}

#[test]
fn the_groups_of_init_and_of_the_host_are_never_signalled() {
    for pid in [-1, 0, 1, raw_own_group()] {
        let watched = Watched {
            pid,
            watch: Watch::Waiter(Waiter::start(i32::MAX).unwrap()),
        };
        let refused = watched.signal_group(0).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::EINVAL), "{pid}");
    }
}

fn raw_own_group() -> i32 {
    // SAFETY: no arguments.
    unsafe { libc::getpgrp() }
}
