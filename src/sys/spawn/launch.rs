//! The child's side: from the first instruction to exec, on memory that the parent prepared.
//!
//! The order is part of the design. The leash comes before Landlock, since the right to signal is judged by what the
//! process was when it took ownership; descriptors are closed after Landlock took its own; signals are unblocked last,
//! when their dispositions are the default ones and nothing of the host can run any more.

use std::convert::Infallible;
use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use super::command::Limit;
use super::error::Step;
use super::{ops, Errno};
use crate::sys::confine;

/// Exit code of a child that could not become the program; the report says why.
const FAILED: c_int = 127;

/// Everything the child needs. The pointers lead into a `Prepared`, which outlives the launch.
pub(super) struct Plan {
    pub(super) program: *const c_char,
    pub(super) argv: *const *const c_char,
    pub(super) envp: *const *const c_char,
    pub(super) directory: *const c_char,
    /// (ours, the child's number), in the order of the child's numbers 0, 1, 2 and so on, without gaps.
    pub(super) streams: *const (c_int, c_int),
    pub(super) stream_count: usize,
    pub(super) limits: *const Limit,
    pub(super) limit_count: usize,
    /// Descriptors that the child's group is to own, or -1.
    pub(super) leash: [c_int; 2],
    pub(super) oom_score: *const u8,
    pub(super) oom_score_length: usize,
    pub(super) confine: confine::Plan,
    pub(super) report: c_int,
    pub(super) close_bound: c_int,
    pub(super) use_close_range: bool,
    pub(super) shared: *const Shared,
    /// Set by the child. The parent sees it only when the two really share memory, and then the parent has also
    /// been standing still until exec; where clone is emulated by fork it stays false.
    pub(super) memory_is_shared: AtomicBool,
    #[cfg(test)]
    pub(super) fault: Option<Fault>,
}

/// A page that parent and child see both, whatever made the child.
#[repr(C)]
pub(super) struct Shared {
    /// The [`Step`] that the child has begun last.
    pub(super) progress: AtomicI32,
    /// Whether the limit that marks the run was accepted.
    pub(super) tagged: AtomicBool,
    pub(super) confine: confine::Outcome,
}

impl Shared {
    pub(super) fn new() -> Shared {
        Shared {
            progress: AtomicI32::new(0),
            tagged: AtomicBool::new(false),
            confine: confine::Outcome::new(),
        }
    }
}

/// What a test makes go wrong.
#[cfg(test)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fault {
    pub(crate) step: Step,
    pub(crate) what: FaultKind,
}

#[cfg(test)]
#[derive(Debug, Clone, Copy)]
pub(crate) enum FaultKind {
    Errno(i32),
    Killed,
}

/// A step that failed, why, and which of several alike it was.
struct Failure {
    step: Step,
    errno: Errno,
    detail: i32,
}

/// The child. Never returns; its signature is the one that clone wants.
pub(super) extern "C" fn child_main(plan: *mut c_void) -> c_int {
    // SAFETY: the parent passes a `Plan` that lives until the child has become the program or is gone.
    let plan = unsafe { &*plan.cast::<Plan>() };
    plan.memory_is_shared.store(true, Ordering::Relaxed);
    // SAFETY: the pointers in the plan are good for as long as the plan is.
    let Err(failure) = unsafe { become_program(plan) };
    ops::report(
        plan.report,
        [failure.step as i32, failure.errno, failure.detail],
    );
    ops::exit(FAILED)
}

/// # Safety
/// Runs in a child that owns its descriptor table, with a plan whose pointers are valid.
unsafe fn become_program(plan: &Plan) -> Result<Infallible, Failure> {
    begin(plan, Step::Session)?;
    ops::reset_dispositions();
    ops::new_session().map_err(failed(Step::Session))?;
    begin(plan, Step::Leash)?;
    for end in plan.leash {
        if end >= 0 {
            ops::own_leash(end).map_err(failed(Step::Leash))?;
        }
    }
    if plan.oom_score_length > 0 {
        // SAFETY: the text belongs to the prepared command. Failure is no reason not to run.
        unsafe {
            ops::write_file(
                c"/proc/self/oom_score_adj".as_ptr(),
                plan.oom_score,
                plan.oom_score_length,
            )
        };
    }
    // SAFETY: valid pointers, by this function's contract.
    unsafe {
        set_limits(plan)?;
        begin(plan, Step::Directory)?;
        ops::change_directory(plan.directory).map_err(failed(Step::Directory))?;
        place_streams(plan)?;
    }
    begin(plan, Step::Confine)?;
    // SAFETY: the shared page is mapped until the launch is over.
    let outcome = unsafe { &(*plan.shared).confine };
    confine::apply(&plan.confine, outcome).map_err(|(measure, errno)| Failure {
        step: Step::Confine,
        errno,
        detail: measure,
    })?;
    begin(plan, Step::Close)?;
    let first = plan.stream_count as c_int;
    ops::close_from(first, plan.report, plan.close_bound, plan.use_close_range)
        .map_err(failed(Step::Close))?;
    begin(plan, Step::Exec)?;
    ops::unblock_signals();
    // SAFETY: strings and arrays are terminated; the prepared command made them so.
    let errno = unsafe { ops::execute(plan.program, plan.argv, plan.envp) };
    Err(Failure {
        step: Step::Exec,
        errno,
        detail: 0,
    })
}

fn failed(step: Step) -> impl Fn(Errno) -> Failure {
    move |errno| Failure {
        step,
        errno,
        detail: 0,
    }
}

fn begin(plan: &Plan, step: Step) -> Result<(), Failure> {
    // SAFETY: the shared page is mapped until the launch is over.
    unsafe {
        (*plan.shared)
            .progress
            .store(step as i32, Ordering::Relaxed)
    };
    #[cfg(test)]
    if let Some(Fault { step: at, what }) = plan.fault {
        if at == step {
            match what {
                FaultKind::Errno(errno) => return Err(failed(step)(errno)),
                FaultKind::Killed => ops::kill_self(),
            }
        }
    }
    Ok(())
}

/// # Safety
/// `plan.limits` points to `plan.limit_count` elements.
unsafe fn set_limits(plan: &Plan) -> Result<(), Failure> {
    begin(plan, Step::Limits)?;
    let mut index = 0;
    while index < plan.limit_count {
        // SAFETY: below the count.
        let limit = unsafe { &*plan.limits.add(index) };
        let set = ops::set_limit(limit.resource, limit.soft, limit.hard);
        match set {
            Ok(()) if limit.is_tag => {
                // SAFETY: the shared page is mapped until the launch is over.
                unsafe { (*plan.shared).tagged.store(true, Ordering::Relaxed) }
            }
            Err(errno) if limit.required => {
                return Err(Failure {
                    step: Step::Limits,
                    errno,
                    detail: limit.resource,
                });
            }
            _ => {}
        }
        index += 1;
    }
    Ok(())
}

/// # Safety
/// `plan.streams` points to `plan.stream_count` elements.
unsafe fn place_streams(plan: &Plan) -> Result<(), Failure> {
    begin(plan, Step::Streams)?;
    let mut index = 0;
    while index < plan.stream_count {
        // SAFETY: below the count.
        let (ours, theirs) = unsafe { *plan.streams.add(index) };
        ops::place(ours, theirs).map_err(|errno| Failure {
            step: Step::Streams,
            errno,
            detail: theirs,
        })?;
        index += 1;
    }
    Ok(())
}
