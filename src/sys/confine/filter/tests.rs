//! The filter, executed by a machine of a few lines: also for the processor that the tests do not run on.

use super::calls::{Call, CLONE, CLONE3, IOCTL, REFUSED, SOCKET, SOCKETPAIR};
use super::*;

/// What a filter is asked about.
#[derive(Clone, Copy)]
struct Question {
    arch: u32,
    number: u32,
    args: [u64; 6],
}

impl Question {
    fn new(machine: Machine, number: u32, args: &[u64]) -> Question {
        let mut all = [0; 6];
        all[..args.len()].copy_from_slice(args);
        Question {
            arch: machine.audit_arch(),
            number,
            args: all,
        }
    }

    /// A word of `struct seccomp_data`, as a little-endian processor has it.
    fn word(&self, offset: u32) -> u32 {
        match offset {
            0 => self.number,
            4 => self.arch,
            16..=60 => {
                let arg = self.args[(offset as usize - 16) / 8];
                (arg >> (8 * (offset % 8))) as u32
            }
            _ => panic!("the filter reads at {offset}"),
        }
    }
}

fn ask(program: &[Instruction], question: Question) -> u32 {
    let mut accumulator = 0;
    let mut at = 0;
    loop {
        let Instruction {
            code,
            jump_true,
            jump_false,
            operand,
        } = program[at];
        at += 1;
        let holds = match code {
            LOAD => {
                accumulator = question.word(operand);
                continue;
            }
            RETURN => return operand,
            JUMP_IF_EQUAL => accumulator == operand,
            JUMP_IF_AT_LEAST => accumulator >= operand,
            JUMP_IF_ANY_BIT => accumulator & operand != 0,
            code => panic!("no such instruction: {code:#x}"),
        };
        at += usize::from(if holds { jump_true } else { jump_false });
    }
}

const MACHINES: [Machine; 2] = [Machine::X86_64, Machine::Aarch64];

/// The answer for `call` with `args` on `machine`.
fn answer(machine: Machine, network: bool, call: &Call, args: &[u64]) -> u32 {
    let number = machine.number(call).expect("both have it");
    ask(
        &build_for(machine, network),
        Question::new(machine, number, args),
    )
}

#[test]
fn every_jump_lands_inside_the_program() {
    for machine in MACHINES {
        for network in [false, true] {
            let program = build_for(machine, network);
            assert!(program.len() < 4096, "the kernel's limit");
            for (at, instruction) in program.iter().enumerate() {
                let furthest = instruction.jump_true.max(instruction.jump_false);
                let is_end = instruction.code == RETURN;
                assert!(is_end || at + 1 + usize::from(furthest) < program.len());
            }
        }
    }
}

#[test]
fn the_listed_calls_are_refused_and_others_go_on() {
    for machine in MACHINES {
        let program = build_for(machine, false);
        let refused: Vec<u32> = REFUSED.iter().filter_map(|c| machine.number(c)).collect();
        let judged =
            [CLONE, CLONE3, IOCTL, SOCKET, SOCKETPAIR].map(|c| machine.number(&c).unwrap());
        for number in 0..600 {
            let expected = match number {
                n if refused.contains(&n) => errno(libc::EPERM),
                n if judged.contains(&n) => continue,
                _ => ALLOW,
            };
            let found = ask(&program, Question::new(machine, number, &[]));
            assert_eq!(found, expected, "{machine:?} {number}");
        }
        assert_eq!(answer(machine, false, &CLONE3, &[]), errno(libc::ENOSYS));
    }
}

#[test]
fn foreign_conventions_are_refused_before_anything_else() {
    const I386: u32 = 0x4000_0003;
    const ARM: u32 = 0x4000_0028;
    for machine in MACHINES {
        let program = build_for(machine, true);
        let other = MACHINES.into_iter().find(|m| *m != machine).unwrap();
        for arch in [I386, ARM, other.audit_arch(), 0] {
            for number in [0, 1, 41, 198, 220] {
                let question = Question {
                    arch,
                    number,
                    args: [0; 6],
                };
                assert_eq!(ask(&program, question), KILL_PROCESS);
            }
        }
    }
    let program = build_for(Machine::X86_64, true);
    for number in [0, 1, 41, 512, 547] {
        let question = Question::new(Machine::X86_64, X32_BIT | number, &[1]);
        assert_eq!(ask(&program, question), errno(libc::ENOSYS));
    }
}

#[test]
fn only_local_sockets_are_made_unless_the_network_is_granted() {
    const FAMILIES: [u64; 8] = [0, 2, 10, 16, 17, 38, 40, 0x1_0000];
    for machine in MACHINES {
        for call in [&SOCKET, &SOCKETPAIR] {
            // The kernel looks at the lower half of the argument only, and so has the filter to.
            for family in [1, 1 | 1 << 32] {
                assert_eq!(answer(machine, false, call, &[family]), ALLOW);
            }
            for family in FAMILIES {
                let family = &[family, 1, 0];
                let refused = answer(machine, false, call, family);
                assert_eq!(refused, errno(libc::EACCES), "{machine:?} {family:?}");
                assert_eq!(answer(machine, true, call, family), ALLOW);
            }
        }
    }
}

#[test]
fn processes_and_threads_are_made_and_namespaces_are_not() {
    // What fork, vfork with posix_spawn, and pthread_create ask for.
    const ORDINARY: [u64; 3] = [0x0120_0011, 0x4111, 0x003d_0f00];
    const NEW: [u64; 7] = [
        0x2_0000,
        0x200_0000,
        0x400_0000,
        0x800_0000,
        0x1000_0000,
        0x2000_0000,
        0x4000_0000,
    ];
    for machine in MACHINES {
        for flags in ORDINARY {
            assert_eq!(answer(machine, false, &CLONE, &[flags]), ALLOW);
            for new in NEW {
                let refused = answer(machine, true, &CLONE, &[flags | new]);
                assert_eq!(refused, errno(libc::EPERM), "{new:#x}");
            }
        }
    }
}

#[test]
fn terminals_are_asked_and_not_typed_into() {
    const TCGETS: u64 = 0x5401;
    for machine in MACHINES {
        assert_eq!(answer(machine, false, &IOCTL, &[0, TCGETS]), ALLOW);
        for request in TYPING {
            // Here as well the upper half is nothing to the kernel.
            let args = [0, u64::from(request) | 7 << 32];
            assert_eq!(answer(machine, true, &IOCTL, &args), errno(libc::EPERM));
        }
    }
}

#[test]
fn the_numbers_are_those_of_the_c_library() {
    let Some(machine) = Machine::own() else {
        println!("skipped: no filter for this processor");
        return;
    };
    let known = [
        (libc::SYS_socket, &SOCKET),
        (libc::SYS_socketpair, &SOCKETPAIR),
        (libc::SYS_clone, &CLONE),
        (libc::SYS_clone3, &CLONE3),
        (libc::SYS_ioctl, &IOCTL),
    ];
    for (number, call) in known {
        assert_eq!(machine.number(call), Some(number as u32), "{}", call.name);
    }
    let refused: Vec<(&str, u32)> = REFUSED
        .iter()
        .filter_map(|call| Some((call.name, machine.number(call)?)))
        .collect();
    let library = library_numbers();
    assert_eq!(library.len(), refused.len());
    for (number, (name, ours)) in library.iter().zip(refused) {
        assert_eq!(*number as u32, ours, "{name}");
    }
}

/// The C library's numbers, in the order of [`REFUSED`].
fn library_numbers() -> Vec<libc::c_long> {
    macro_rules! numbers {
        ($($name:ident)*) => {
            vec![$(libc::$name),*]
        };
    }
    let mut numbers = numbers!(
        SYS_io_uring_setup SYS_io_uring_enter SYS_io_uring_register SYS_unshare SYS_setns SYS_mount SYS_umount2 SYS_pivot_root SYS_chroot SYS_open_tree SYS_move_mount SYS_fsopen SYS_fsconfig SYS_fsmount SYS_fspick SYS_mount_setattr SYS_add_key SYS_request_key SYS_keyctl SYS_bpf SYS_perf_event_open SYS_userfaultfd SYS_ptrace SYS_process_vm_readv SYS_process_vm_writev SYS_process_madvise SYS_kcmp SYS_pidfd_getfd SYS_open_by_handle_at SYS_kexec_load SYS_kexec_file_load SYS_init_module SYS_finit_module SYS_delete_module SYS_reboot SYS_swapon SYS_swapoff SYS_acct SYS_quotactl SYS_quotactl_fd SYS_clock_settime SYS_clock_adjtime SYS_settimeofday SYS_adjtimex SYS_sethostname SYS_setdomainname SYS_syslog SYS_vhangup SYS_fanotify_init
    );
    #[cfg(target_arch = "x86_64")]
    {
        let before_clocks = numbers.len() - 9;
        numbers.splice(
            before_clocks..before_clocks,
            [libc::SYS_iopl, libc::SYS_ioperm],
        );
    }
    numbers
}
