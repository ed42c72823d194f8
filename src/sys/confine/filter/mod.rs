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
        program: Vec::with_capacity(192),
    };
    filter.refuse_foreign_conventions(machine);
    filter.judge(&rules(machine, network));
    filter.program
}

/// What is done about one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Judgement {
    /// Whatever the arguments are.
    Refuse(i32),
    /// With a flag for a new namespace.
    RefuseNamespaces,
    /// With a request that types into a terminal.
    RefuseTyping,
    /// Unless it is for local sockets.
    RefuseNetwork,
}

/// The calls that do not simply go on, by their numbers in order.
fn rules(machine: Machine, network: bool) -> Vec<(u32, Judgement)> {
    let mut rules = Vec::with_capacity(calls::REFUSED.len() + 5);
    let mut rule = |call: &Call, judgement| {
        rules.extend(machine.number(call).map(|number| (number, judgement)));
    };
    for call in &calls::REFUSED {
        rule(call, Judgement::Refuse(libc::EPERM));
    }
    rule(&calls::CLONE3, Judgement::Refuse(libc::ENOSYS));
    rule(&calls::CLONE, Judgement::RefuseNamespaces);
    rule(&calls::IOCTL, Judgement::RefuseTyping);
    if !network {
        rule(&calls::SOCKET, Judgement::RefuseNetwork);
        rule(&calls::SOCKETPAIR, Judgement::RefuseNetwork);
    }
    rules.sort_unstable_by_key(|(number, _)| *number);
    rules
}

fn errno(number: i32) -> u32 {
    ERRNO | number as u32
}

/// How many rules are tried one after the other where the search for a number ends.
const LEAF: usize = 4;

/// A program while it grows.
struct Filter {
    program: Vec<Instruction>,
}

impl Filter {
    /// Leaves the call's number in the accumulator.
    fn refuse_foreign_conventions(&mut self, machine: Machine) {
        self.load(ARCHITECTURE);
        self.jump(JUMP_IF_EQUAL, machine.audit_arch(), 1, 0);
        self.give(KILL_PROCESS);
        self.load(NUMBER);
        if machine == Machine::X86_64 {
            self.jump(JUMP_IF_AT_LEAST, X32_BIT, 0, 1);
            self.give(errno(libc::ENOSYS));
        }
    }

    /// A binary search, since the kernel tries every number on a filter that it is given: one rule after the other, that
    /// would take longer than all the rest of what confines a child.
    fn judge(&mut self, rules: &[(u32, Judgement)]) {
        if rules.len() <= LEAF {
            rules.iter().for_each(|rule| self.rule(*rule));
            return self.give(ALLOW);
        }
        let (low, high) = rules.split_at(rules.len() / 2);
        let jump = self.program.len();
        self.jump(JUMP_IF_AT_LEAST, high[0].0, 0, 0);
        self.judge(low);
        self.program[jump].jump_true = self.distance_from(jump);
        self.judge(high);
    }

    /// Goes on behind it with the number in the accumulator if it is another one.
    fn rule(&mut self, (number, judgement): (u32, Judgement)) {
        let jump = self.program.len();
        self.jump(JUMP_IF_EQUAL, number, 0, 0);
        match judgement {
            Judgement::Refuse(number) => self.give(errno(number)),
            Judgement::RefuseNamespaces => {
                self.load(ARGUMENT_0);
                self.jump(JUMP_IF_ANY_BIT, NEW_NAMESPACES, 0, 1);
                self.give(errno(libc::EPERM));
                self.give(ALLOW);
            }
            Judgement::RefuseTyping => {
                self.load(ARGUMENT_1);
                for request in TYPING {
                    self.jump(JUMP_IF_EQUAL, request, 0, 1);
                    self.give(errno(libc::EPERM));
                }
                self.give(ALLOW);
            }
            Judgement::RefuseNetwork => {
                self.load(ARGUMENT_0);
                self.jump(JUMP_IF_EQUAL, AF_UNIX, 1, 0);
                self.give(errno(libc::EACCES));
                self.give(ALLOW);
            }
        }
        self.program[jump].jump_false = self.distance_from(jump);
    }

    /// From behind the instruction at `jump` to the one that comes next.
    fn distance_from(&self, jump: usize) -> u8 {
        u8::try_from(self.program.len() - jump - 1).expect("half of all rules fit into a jump")
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
