//! One set of tests for both implementations. A wait that is expected to end has a deadline far beyond any load, only
//! to turn a hang into a failure.

use super::*;
use crate::sys::fd;
use crate::sys::poll::{deadline_after, poll, PollFd};
use std::collections::HashMap;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

const HANG: Duration = Duration::from_secs(120);

/// Runs a test on every poller that this build has.
fn on_each(test: impl Fn(&Poller)) {
    test(&Poller::new().unwrap());
    test(&Poller::portable().unwrap());
}

fn past() -> Option<Instant> {
    Some(Instant::now())
}

fn look(poller: &Poller) -> Ready {
    poller.wait(&mut poller.generation(), past()).unwrap()
}

/// Waits for something that must come.
fn expect(poller: &Poller, seen: &mut Generation) -> Ready {
    let ready = poller.wait(seen, deadline_after(HANG)).unwrap();
    assert_ne!(ready, Ready::Timeout);
    ready
}

/// Lets other threads run until so many are in `wait`.
fn await_waiters(poller: &Poller, count: usize) {
    let hang = deadline_after(HANG);
    while poller.waiting() < count {
        assert!(!crate::sys::poll::has_passed(hang));
        std::thread::yield_now();
    }
}

fn readable(token: u64) -> Ready {
    Ready::Event {
        token,
        readable: true,
        writable: false,
        hangup: false,
    }
}

fn receive_all(fd: &OwnedFd) -> Vec<u8> {
    let mut all = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = fd::recv(fd.as_raw_fd(), &mut buffer) {
        all.extend_from_slice(&buffer[..count]);
    }
    all
}

const WRITE: Interest = Interest {
    read: false,
    write: true,
};

#[test]
fn the_best_poller_of_linux_is_epoll() {
    let is_portable = matches!(Poller::new().unwrap().kind, Kind::Portable(_));
    assert_eq!(
        is_portable,
        cfg!(any(ptc_portable, not(target_os = "linux")))
    );
}

#[test]
fn an_event_comes_once_until_it_is_armed_again() {
    on_each(|poller| {
        let (left, right) = fd::socketpair().unwrap();
        poller.add(left.as_raw_fd(), 5, Interest::READ).unwrap();
        assert_eq!(look(poller), Ready::Timeout);
        fd::send(right.as_raw_fd(), b"x").unwrap();
        assert_eq!(look(poller), readable(5));
        assert_eq!(look(poller), Ready::Timeout);
        poller.rearm(left.as_raw_fd(), 6, Interest::READ).unwrap();
        assert_eq!(look(poller), readable(6));
        receive_all(&left);
        poller.rearm(left.as_raw_fd(), 7, Interest::READ).unwrap();
        assert_eq!(look(poller), Ready::Timeout);
    });
}

#[test]
fn directions_and_hangups_are_told_apart() {
    on_each(|poller| {
        let (left, right) = fd::socketpair().unwrap();
        poller.add(left.as_raw_fd(), 1, WRITE).unwrap();
        let Ready::Event {
            readable, writable, ..
        } = look(poller)
        else {
            panic!("a new socket has room to write");
        };
        assert!(writable && !readable);
        drop(right);
        let none = Interest {
            read: false,
            write: false,
        };
        poller.rearm(left.as_raw_fd(), 1, none).unwrap();
        assert!(matches!(look(poller), Ready::Event { hangup: true, .. }));
        // Although the hangup lasts, it is not told again.
        assert_eq!(look(poller), Ready::Timeout);
    });
}

#[test]
fn misuse_is_an_error_of_a_known_kind() {
    on_each(|poller| {
        let (left, _right) = fd::socketpair().unwrap();
        let raw = left.as_raw_fd();
        let kind = |result: io::Result<()>| result.unwrap_err().kind();
        let token = u64::MAX;
        assert_eq!(
            kind(poller.add(raw, token, Interest::READ)),
            io::ErrorKind::InvalidInput
        );
        assert_eq!(
            kind(poller.rearm(raw, 1, Interest::READ)),
            io::ErrorKind::NotFound
        );
        assert_eq!(kind(poller.remove(raw)), io::ErrorKind::NotFound);
        poller.add(raw, 1, Interest::READ).unwrap();
        assert_eq!(
            kind(poller.add(raw, 1, Interest::READ)),
            io::ErrorKind::AlreadyExists
        );
        let error = poller.add(-1, 1, Interest::READ).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EBADF));
    });
}

#[test]
fn a_removed_descriptor_is_silent_and_its_number_can_be_used_again() {
    on_each(|poller| {
        let (left, right) = fd::socketpair().unwrap();
        poller.add(left.as_raw_fd(), 1, Interest::READ).unwrap();
        fd::send(right.as_raw_fd(), b"x").unwrap();
        poller.remove(left.as_raw_fd()).unwrap();
        assert_eq!(look(poller), Ready::Timeout);
        poller.add(left.as_raw_fd(), 2, Interest::READ).unwrap();
        assert_eq!(look(poller), readable(2));
    });
}

#[test]
fn wakes_without_a_waiter_wait_for_one() {
    on_each(|poller| {
        poller.wake_one();
        poller.wake_one();
        assert_eq!(look(poller), Ready::Woken);
        assert_eq!(look(poller), Ready::Woken);
        assert_eq!(look(poller), Ready::Timeout);
        let (mut one, mut other) = (Generation::default(), Generation::default());
        poller.wake_all();
        poller.wake_all();
        for seen in [&mut one, &mut other] {
            assert_eq!(poller.wait(seen, past()).unwrap(), Ready::Woken);
            assert_eq!(poller.wait(seen, past()).unwrap(), Ready::Timeout);
        }
    });
}

#[test]
fn a_deadline_ends_the_wait_and_not_before() {
    on_each(|poller| {
        let deadline = deadline_after(Duration::from_micros(1500));
        let ready = poller.wait(&mut Generation::default(), deadline).unwrap();
        assert_eq!(ready, Ready::Timeout);
        assert!(crate::sys::poll::has_passed(deadline));
    });
}

#[test]
fn deadlines_of_several_waiters_are_their_own() {
    on_each(|poller| {
        let (sender, receiver) = mpsc::channel();
        std::thread::scope(|scope| {
            let patient = scope.spawn(|| expect(poller, &mut Generation::default()));
            for ms in [30, 1, 10] {
                let sender = sender.clone();
                scope.spawn(move || {
                    let deadline = deadline_after(Duration::from_millis(ms));
                    sender.send(poller.wait(&mut Generation::default(), deadline))
                });
            }
            for _ in 0..3 {
                let ready = receiver.recv_timeout(HANG).unwrap().unwrap();
                assert_eq!(ready, Ready::Timeout);
            }
            poller.wake_one();
            assert_eq!(patient.join().unwrap(), Ready::Woken);
        });
    });
}

#[test]
fn every_single_wake_ends_one_wait() {
    const WAKES: usize = 4000;
    on_each(|poller| {
        let woken = AtomicUsize::new(0);
        let done = AtomicBool::new(false);
        let (sender, receiver) = mpsc::channel();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let sender = sender.clone();
                let (woken, done) = (&woken, &done);
                scope.spawn(move || {
                    let mut seen = Generation::default();
                    while !done.load(Ordering::SeqCst) {
                        assert_eq!(expect(poller, &mut seen), Ready::Woken);
                        if woken.fetch_add(1, Ordering::SeqCst) + 1 == WAKES {
                            sender.send(()).unwrap();
                        }
                    }
                });
            }
            for _ in 0..2 {
                scope.spawn(|| (0..WAKES / 2).for_each(|_| poller.wake_one()));
            }
            let result = receiver.recv_timeout(HANG);
            done.store(true, Ordering::SeqCst);
            poller.wake_all();
            result.expect("a wake was lost");
        });
        // Beyond the counted ones only the broadcast woke anybody, each thread at most once.
        assert!(woken.load(Ordering::SeqCst) <= WAKES + 4);
        assert_eq!(look(poller), Ready::Timeout);
    });
}

#[test]
fn every_broadcast_reaches_every_thread() {
    const THREADS: usize = 6;
    const ROUNDS: usize = 500;
    on_each(|poller| {
        // Traffic beside it: an event that is never consumed, so that threads also leave with events.
        let (left, right) = fd::socketpair().unwrap();
        fd::send(right.as_raw_fd(), b"x").unwrap();
        poller.add(left.as_raw_fd(), 1, Interest::READ).unwrap();
        let total = AtomicUsize::new(0);
        let (sender, receiver) = mpsc::channel();
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                let (sender, left, total) = (sender.clone(), &left, &total);
                scope.spawn(move || {
                    let mut seen = Generation::default();
                    let mut rounds = 0;
                    while rounds < ROUNDS {
                        if expect(poller, &mut seen) != Ready::Woken {
                            poller.rearm(left.as_raw_fd(), 1, Interest::READ).unwrap();
                            continue;
                        }
                        // Back to waiting at once, where it must not take the wake from those who have yet to see it.
                        rounds += 1;
                        if (total.fetch_add(1, Ordering::SeqCst) + 1) % THREADS == 0 {
                            sender.send(rounds).unwrap();
                        }
                    }
                });
            }
            for round in 1..=ROUNDS {
                poller.wake_all();
                let reached = receiver.recv_timeout(HANG).expect("a wake was lost");
                assert_eq!(reached, round);
            }
        });
    });
}

#[test]
fn a_broadcast_is_not_taken_by_threads_that_it_has_already_woken() {
    const THREADS: usize = 6;
    on_each(|poller| {
        for _ in 0..300 {
            let before = poller.generation();
            let woken = AtomicUsize::new(0);
            let (sender, receiver) = mpsc::channel();
            std::thread::scope(|scope| {
                for _ in 0..THREADS {
                    let (sender, woken) = (sender.clone(), &woken);
                    scope.spawn(move || {
                        let mut seen = before;
                        assert_eq!(expect(poller, &mut seen), Ready::Woken);
                        if woken.fetch_add(1, Ordering::SeqCst) + 1 == THREADS {
                            sender.send(()).unwrap();
                        }
                        // Waits again while the others still sleep, until the second broadcast.
                        assert_eq!(expect(poller, &mut seen), Ready::Woken);
                    });
                }
                await_waiters(poller, THREADS);
                poller.wake_all();
                let result = receiver.recv_timeout(HANG);
                poller.wake_all();
                result.expect("a wake was lost");
            });
        }
    });
}

#[test]
fn threads_that_do_not_come_back_leave_the_others_served() {
    const CONNECTIONS: usize = 4;
    const WAKES: usize = 3;
    on_each(|poller| {
        let pairs: Vec<_> = (0..CONNECTIONS)
            .map(|_| fd::socketpair().unwrap())
            .collect();
        for (token, (left, _)) in pairs.iter().enumerate() {
            let raw = left.as_raw_fd();
            poller.add(raw, token as u64, Interest::READ).unwrap();
        }
        let (sender, receiver) = mpsc::channel();
        std::thread::scope(|scope| {
            for _ in 0..CONNECTIONS + WAKES {
                let sender = sender.clone();
                scope.spawn(move || sender.send(expect(poller, &mut Generation::default())));
            }
            await_waiters(poller, CONNECTIONS + WAKES);
            // Two at once, then one after the other.
            for part in [&pairs[..2], &pairs[2..3], &pairs[3..]] {
                for (_, right) in part {
                    fd::send(right.as_raw_fd(), b"x").unwrap();
                }
                for _ in part {
                    let ready = receiver.recv_timeout(HANG).expect("nobody took the event");
                    assert!(matches!(ready, Ready::Event { .. }));
                }
            }
            (0..WAKES).for_each(|_| poller.wake_one());
            for _ in 0..WAKES {
                let ready = receiver.recv_timeout(HANG).expect("nobody took the wake");
                assert_eq!(ready, Ready::Woken);
            }
        });
    });
}

#[test]
fn broadcasts_and_single_wakes_do_not_eat_each_other() {
    on_each(|poller| {
        for _ in 0..500 {
            let (sender, receiver) = mpsc::channel();
            let before = poller.generation();
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    let sender = sender.clone();
                    scope.spawn(move || {
                        let mut seen = before;
                        while seen == before {
                            assert_eq!(expect(poller, &mut seen), Ready::Woken);
                            sender.send(()).unwrap();
                        }
                    });
                }
                poller.wake_one();
                poller.wake_all();
                poller.wake_one();
            });
            // Three for the broadcast and two singles, of which the last threads may have left some behind.
            let mut woken = receiver.try_iter().count();
            while look(poller) == Ready::Woken {
                woken += 1;
            }
            assert_eq!(woken, 5);
        }
    });
}

#[test]
fn eight_threads_handle_every_message_of_two_hundred_connections_once() {
    const THREADS: usize = 8;
    const CONNECTIONS: usize = 200;
    const MESSAGES: usize = 40;
    on_each(|poller| {
        let pairs: Vec<_> = (0..CONNECTIONS)
            .map(|_| fd::socketpair().unwrap())
            .collect();
        let busy: Vec<_> = pairs.iter().map(|_| AtomicBool::new(false)).collect();
        let next: Vec<_> = pairs.iter().map(|_| AtomicU32::new(0)).collect();
        let handled = AtomicUsize::new(0);
        let done = AtomicBool::new(false);
        let (sender, receiver) = mpsc::channel();
        for (index, (left, _)) in pairs.iter().enumerate() {
            let token = index as u64;
            poller.add(left.as_raw_fd(), token, Interest::READ).unwrap();
        }
        let handle = |index: usize| {
            assert!(!busy[index].swap(true, Ordering::SeqCst), "served twice");
            let left = pairs[index].0.as_raw_fd();
            // One message an event: what is left must make the descriptor ready again.
            let mut message = [0; 1];
            assert_eq!(fd::recv(left, &mut message).unwrap(), 1);
            let expected = next[index].fetch_add(1, Ordering::SeqCst);
            assert_eq!(u32::from(message[0]), expected);
            busy[index].store(false, Ordering::SeqCst);
            poller.rearm(left, index as u64, Interest::READ).unwrap();
            handled.fetch_add(1, Ordering::SeqCst) + 1 == CONNECTIONS * MESSAGES
        };
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                let (sender, done, handle) = (sender.clone(), &done, &handle);
                scope.spawn(move || {
                    let mut seen = Generation::default();
                    while !done.load(Ordering::SeqCst) {
                        if let Ready::Event { token, .. } = expect(poller, &mut seen) {
                            if handle(token as usize) {
                                sender.send(()).unwrap();
                            }
                        }
                    }
                });
            }
            for part in pairs.chunks(CONNECTIONS / 2) {
                scope.spawn(move || {
                    for message in 0..MESSAGES {
                        for (_, right) in part {
                            fd::send(right.as_raw_fd(), &[message as u8]).unwrap();
                        }
                    }
                });
            }
            let result = receiver.recv_timeout(HANG);
            done.store(true, Ordering::SeqCst);
            poller.wake_all();
            result.expect("a message was not handled");
        });
        assert!(next
            .iter()
            .all(|count| count.load(Ordering::SeqCst) == MESSAGES as u32));
    });
}

#[test]
fn descriptors_come_and_go_while_others_wait() {
    const ROUNDS: u64 = 1500;
    on_each(|poller| {
        let connections = Mutex::new(HashMap::<u64, OwnedFd>::new());
        let done = AtomicBool::new(false);
        let stale = AtomicU64::new(0);
        let (sender, receiver) = mpsc::channel();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let (connections, done, stale) = (&connections, &done, &stale);
                let sender = sender.clone();
                scope.spawn(move || {
                    let mut seen = Generation::default();
                    while !done.load(Ordering::SeqCst) {
                        let Ready::Event { token, .. } = expect(poller, &mut seen) else {
                            continue;
                        };
                        match lock(connections).remove(&token) {
                            Some(fd) => {
                                poller.remove(fd.as_raw_fd()).unwrap();
                                assert_eq!(receive_all(&fd), token.to_ne_bytes());
                                sender.send(token).unwrap();
                            }
                            None => drop(stale.fetch_add(1, Ordering::SeqCst)),
                        }
                    }
                });
            }
            let mut result = Ok(0);
            for round in 0..ROUNDS {
                let (left, right) = fd::socketpair().unwrap();
                let raw = left.as_raw_fd();
                lock(&connections).insert(round, left);
                poller.add(raw, round, Interest::READ).unwrap();
                fd::send(right.as_raw_fd(), &round.to_ne_bytes()).unwrap();
                if round % 2 == 0 {
                    // Removed under the threads' noses, unless one of them was faster.
                    if let Some(left) = lock(&connections).remove(&round) {
                        poller.remove(left.as_raw_fd()).unwrap();
                        continue;
                    }
                }
                result = receiver.recv_timeout(HANG);
                if result != Ok(round) {
                    break;
                }
            }
            done.store(true, Ordering::SeqCst);
            poller.wake_all();
            assert_eq!(result, Ok(ROUNDS - 1), "an event was lost");
        });
        // Each removed descriptor had at most one event under way.
        assert!(stale.load(Ordering::SeqCst) <= ROUNDS / 2);
    });
}

#[test]
fn a_removed_and_closed_socket_ends_for_its_peer_while_others_wait() {
    on_each(|poller| {
        for token in 0..100 {
            let (left, right) = fd::socketpair().unwrap();
            poller.add(left.as_raw_fd(), token, Interest::READ).unwrap();
            std::thread::scope(|scope| {
                scope.spawn(|| expect(poller, &mut poller.generation()));
                await_waiters(poller, 1);
                poller.remove(left.as_raw_fd()).unwrap();
                drop(left);
                let mut fds = [PollFd::readable(right.as_raw_fd())];
                let found = poll(&mut fds, deadline_after(HANG)).unwrap();
                poller.wake_one();
                assert_eq!(found, 1, "the waiting thread kept the socket open");
            });
        }
    });
}
