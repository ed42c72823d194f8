//! The filter for system calls (seccomp(2)) that a sandbox runs under: a program for the kernel's little machine.
//!
//! It is built here and nowhere installed, for whichever processor is asked for. What it answers:
//!
//! | call | answer |
//! |---|---|
//! | any, by another processor's convention (32-bit programs) | the process is killed: such a call cannot even be told to fail |
//! | any, by the x32 convention | ENOSYS |
//! | `clone3` | ENOSYS: its flags are in memory where no filter sees them, and C libraries then use `clone` |
//! | `clone` with a flag for a new namespace | EPERM |
//! | `ioctl` that types into a terminal | EPERM |
//! | `socket` and `socketpair` of another family than AF_UNIX, where the network is refused | EACCES |
//! | what [`calls::REFUSED`] lists | EPERM |
//! | everything else | goes on |
//!
//! A refusal is an error number and not a death, so that a script gets an exception that names what it may not do.

mod calls;
#[cfg(test)]
mod tests;

use calls::{Call, Machine};

/// One instruction: `struct sock_filter` of `linux/filter.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub(super) struct Instruction {
    code: u16,
    jump_true: u8,
    jump_false: u8,
    operand: u32,
}

/// `BPF_LD | BPF_W | BPF_ABS`
const LOAD: u16 = 0x20;
/// `BPF_JMP | BPF_JEQ | BPF_K`
const JUMP_IF_EQUAL: u16 = 0x15;
/// `BPF_JMP | BPF_JGE | BPF_K`
const JUMP_IF_AT_LEAST: u16 = 0x35;
/// `BPF_JMP | BPF_JSET | BPF_K`
const JUMP_IF_ANY_BIT: u16 = 0x45;
/// `BPF_RET | BPF_K`
const RETURN: u16 = 0x06;

/// Offsets in `struct seccomp_data`. Both processors are little-endian: the low half of an argument comes first.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const ARGUMENT_0: u32 = 16;
const ARGUMENT_1: u32 = 24;

/// `SECCOMP_RET_*`
const ALLOW: u32 = 0x7fff_0000;
const KILL_PROCESS: u32 = 0x8000_0000;
const ERRNO: u32 = 0x0005_0000;

const X32_BIT: u32 = 0x4000_0000;

/// CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET. (CLONE_NEWTIME is none of clone's flags: its bit
/// belongs to the exit signal there.)
const NEW_NAMESPACES: u32 =
    0x0002_0000 | 0x0200_0000 | 0x0400_0000 | 0x0800_0000 | 0x1000_0000 | 0x2000_0000 | 0x4000_0000;

/// TIOCSTI and TIOCLINUX: both put words into the mouth of whoever sits at the terminal.
const TYPING: [u32; 2] = [0x5412, 0x541c];

const AF_UNIX: u32 = 1;

/// The filter for this processor; `None` where it has none.
pub(super) fn build(network: bool) -> Option<Vec<Instruction>> {
    Machine::own().map(|machine| build_for(machine, network))
}

fn build_for(machine: Machine, network: bool) -> Vec<Instruction> {
    let mut filter = Filter {
        machine,
        program: Vec::with_capacity(160),
    };
    filter.refuse_foreign_conventions();
    filter.answer(&calls::CLONE3, errno(libc::ENOSYS));
    filter.refuse_new_namespaces();
    filter.refuse_typing();
    if !network {
        filter.refuse_network(&calls::SOCKET);
        filter.refuse_network(&calls::SOCKETPAIR);
    }
    for call in &calls::REFUSED {
        filter.answer(call, errno(libc::EPERM));
    }
    filter.give(ALLOW);
    filter.program
}

fn errno(number: i32) -> u32 {
    ERRNO | number as u32
}

/// A program while it grows. Between the rules the number of the call is in the accumulator.
struct Filter {
    machine: Machine,
    program: Vec<Instruction>,
}

impl Filter {
    fn refuse_foreign_conventions(&mut self) {
        self.load(ARCHITECTURE);
        self.jump(JUMP_IF_EQUAL, self.machine.audit_arch(), 1, 0);
        self.give(KILL_PROCESS);
        self.load(NUMBER);
        if self.machine == Machine::X86_64 {
            self.jump(JUMP_IF_AT_LEAST, X32_BIT, 0, 1);
            self.give(errno(libc::ENOSYS));
        }
    }

    fn refuse_new_namespaces(&mut self) {
        self.rule(&calls::CLONE, |filter| {
            filter.load(ARGUMENT_0);
            filter.jump(JUMP_IF_ANY_BIT, NEW_NAMESPACES, 0, 1);
            filter.give(errno(libc::EPERM));
        });
    }

    fn refuse_typing(&mut self) {
        self.rule(&calls::IOCTL, |filter| {
            filter.load(ARGUMENT_1);
            for request in TYPING {
                filter.jump(JUMP_IF_EQUAL, request, 0, 1);
                filter.give(errno(libc::EPERM));
            }
        });
    }

    fn refuse_network(&mut self, call: &Call) {
        self.rule(call, |filter| {
            filter.load(ARGUMENT_0);
            filter.jump(JUMP_IF_EQUAL, AF_UNIX, 1, 0);
            filter.give(errno(libc::EACCES));
        });
    }

    /// A call whose answer does not depend on its arguments.
    fn answer(&mut self, call: &Call, answer: u32) {
        if let Some(number) = self.machine.number(call) {
            self.jump(JUMP_IF_EQUAL, number, 0, 1);
            self.give(answer);
        }
    }

    /// A call that `body` judges by its arguments; what falls out of the end of it is allowed.
    fn rule(&mut self, call: &Call, body: impl FnOnce(&mut Filter)) {
        let Some(number) = self.machine.number(call) else {
            return;
        };
        let jump = self.program.len();
        self.jump(JUMP_IF_EQUAL, number, 0, 0);
        body(self);
        self.give(ALLOW);
        let body_length = self.program.len() - jump - 1;
        self.program[jump].jump_false = u8::try_from(body_length).expect("rules are short");
    }

    fn load(&mut self, offset: u32) {
        self.push(LOAD, 0, 0, offset);
    }

    fn jump(&mut self, code: u16, operand: u32, jump_true: u8, jump_false: u8) {
        self.push(code, jump_true, jump_false, operand);
    }

    fn give(&mut self, answer: u32) {
        self.push(RETURN, 0, 0, answer);
    }

    fn push(&mut self, code: u16, jump_true: u8, jump_false: u8, operand: u32) {
        self.program.push(Instruction {
            code,
            jump_true,
            jump_false,
            operand,
        });
    }
}
