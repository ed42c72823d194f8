//! `ptc` runs a model's Python script in a supervised child process, serves the script's tool calls through the
//! host's callback, and hands back only what the script printed.
//!
//! # Where to start
//!
//! [`Engine`] is configuration, tools and host; [`Engine::execute`] runs a script to its end and gives an [`Outcome`];
//! [`Engine::start`] gives a [`Run`] to wait for, pull events from and cancel. Tool calls arrive as [`Call`]s in the
//! callback of a [`Host`], or are pulled, and are answered by their id from any thread. Module `ffi` is the same as a C
//! ABI; `include/ptc.h` is made from it.
//!
//! Data goes one way: `config` and `tool` are read into an `engine`; a run is staged, launched, supervised and settled
//! by `run`; its tool calls come through `rpc`; everything that the operating system is asked for is in `sys`.
//!
//! # Supervision: which mechanism keeps which promise
//!
//! | promise | mechanism | where |
//! |---|---|---|
//! | Starting a script costs the same in a host of any size, and none of the host's threads, handlers or locks notice it | `clone` with shared memory on a stack of its own, all signals blocked meanwhile; raw system calls only; errors come back through a close-on-exec pipe | `sys/spawn` |
//! | The script gets no descriptor, signal mask, disposition or terminal of the host's | `close_range`, dispositions reset, empty mask, `setsid`, `/dev/null` | `sys/spawn/launch.rs` |
//! | No signal meets a recycled pid | process descriptors; the leader stays unreaped until the last signal is sent | `sys/child` |
//! | The exit status is right although the host ignores SIGCHLD or reaps every child | `waitid` by descriptor, then `PIDFD_GET_INFO`, then the word that the script's interpreter has left of its end, else "unknown", said so | `sys/child/pidfd.rs`, `python/boot.py` |
//! | A run ends in time whatever the script does about it | deadline, SIGTERM and SIGCONT to the group, grace period, SIGKILL; one poll that waits for no callback and no pipe's end | `run/supervise.rs` |
//! | Nothing of a run survives it | the group is killed after the leader's end as well; what left it is found by tag, session, marker and parents | `sys/scan` |
//! | What was printed is there | pipes are read after the kill and before the result, bounded in memory, half a second at most | `run/supervise.rs`, `capture.rs` |
//! | A dead host takes its scripts along | the leash: two sockets that only the host holds, and the kernel kills the group when they close; what had left the group is killed by the next engine, which knows it by its tag | `sys/leash.rs`, `sys/scan` |
//! | No directory is left, also by a host that was killed | a lock on the directory that the kernel drops with its owner; the next engine removes what is unlocked, never a living one's | `sys/dir` |
//! | Every call is answered once or told as unanswered | one registry of open calls, claimed by whoever answers first | `rpc/call.rs`, `rpc/exchange.rs` |
//! | The host's environment, memory and signals are out of a script's reach | `no_new_privs`, a Landlock domain, capabilities dropped, in the child before exec | `sys/confine` |
//! | A sandbox writes only where it may, has no network and few ways into the kernel | Landlock rules, a filter for system calls, resource limits | `sys/confine`, `run/isolation.rs` |
//! | What a kernel lacks of that is told | each measure is noted where the child has taken it | `sys/confine` |
//! | No callback after a close, no lock during one | a gate that counts who is inside | `host.rs` |
//!
//! Each mechanism that a kernel may lack has a fallback of plain POSIX, chosen when it is found missing, and with
//! `--cfg ptc_portable` from the start. What remains open there is said in the modules: nobody can look for processes that
//! left the group (`survivors` is null), a leash is watched by a thread of the script's interpreter, and of an
//! exit status that the host takes away there is only the interpreter's word.
#![deny(unsafe_code)]

/// The README's Rust host is compiled and run as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(unix)]
mod capture;
#[cfg(unix)]
#[doc(hidden)]
pub mod command;
mod config;
#[cfg(unix)]
mod crew;
mod definition;
#[cfg(unix)]
mod engine;
mod error;
#[cfg(unix)]
mod event;
#[cfg(unix)]
mod host;
#[cfg(unix)]
mod job;
mod json;
mod panic;
#[cfg(unix)]
mod python;
#[cfg(unix)]
mod rpc;
#[cfg(unix)]
mod run;
mod suggest;
mod text;
mod tool;
#[cfg(unix)]
mod tools;

#[allow(unsafe_code)]
pub mod ffi;
#[allow(unsafe_code)]
mod sys;

pub use definition::DefinitionStats;
pub use engine::Engine;
pub use error::{Code, Error, Result};
pub use event::{Event, EventKind};
pub use host::Host;
pub use rpc::call::{defer, fail, is_wanted, reply, reply_text, Call};
pub use run::outcome::{Outcome, Status};
pub use run::Run;
