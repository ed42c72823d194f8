//! From the configuration's `isolation` to what a child is locked in with, and to what the result says of it.
//!
//! What is asked for and what is had are kept apart: the result lists both, and where the configuration requires what
//! this system lacks, nothing is started.

use crate::config::{Isolation, IsolationLevel, Limits};
use crate::json;
use crate::python::Interpreter;
use crate::sys::confine::{Access, Confine, Confinement, PathRule, Sandbox};
use crate::sys::socket::own_uid;
use crate::sys::spawn::Limit;
use std::path::{Path, PathBuf};

/// Where a script runs, and with what.
pub(super) struct Place<'a> {
    pub stage: &'a Path,
    pub cwd: &'a Path,
    pub interpreter: &'a Interpreter,
}

/// What a child is started with, and the beginning of the report.
pub(super) struct Prepared {
    pub confine: Confine,
    pub limits: Vec<Limit>,
    pub report: Report,
}

/// What is asked, had and missing.
#[derive(Debug, Default)]
pub(super) struct Report {
    requested: &'static str,
    applied: Vec<String>,
    missing: Vec<String>,
}

/// Why nothing is started.
pub(super) struct Refusal {
    pub message: String,
    /// `None`: it is the configuration that is wrong.
    pub report: Option<Report>,
}

const WRITE_KEY: &str = "code_execution.isolation.write";
const READ_KEY: &str = "code_execution.isolation.read";

/// Devices that every program may expect.
const DEVICES: [&str; 6] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
];

/// Where `multiprocessing` has its semaphores and shared memory.
const SHARED_MEMORY: &str = "/dev/shm";

/// What programs read of a system that they may not look around in: programs and their libraries, what the C library
/// consults, and what the kernel says of the machine.
const SYSTEM: [&str; 47] = [
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/usr/bin",
    "/usr/sbin",
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/usr/libexec",
    "/usr/local/bin",
    "/usr/local/lib",
    "/usr/share",
    "/nix/store",
    "/gnu/store",
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/gai.conf",
    "/etc/gitconfig",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/locale.alias",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/pki/tls",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/timezone",
    "/proc/cpuinfo",
    "/proc/filesystems",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/sys",
    "/proc/uptime",
    "/sys/devices/system/cpu",
];

/// What a sandbox's limits have to do with an ending by `signal`, to stand behind a sentence that names it.
pub(super) fn limit_behind(signal: i32, isolation: Option<&Isolation>) -> Option<String> {
    let limits = &isolation?.limits;
    let memory = limits
        .memory_mb
        .map(|mb| format!("memory (code_execution.isolation.memory_mb is {mb})"));
    let cpu = limits
        .cpu_seconds
        .map(|s| format!("CPU time (code_execution.isolation.cpu_seconds is {s})"));
    match signal {
        libc::SIGXCPU => cpu.map(|cpu| format!("it has used up its {cpu}")),
        libc::SIGXFSZ => limits.file_mb.map(|mb| {
            format!("it wrote a larger file than it may (code_execution.isolation.file_mb is {mb})")
        }),
        libc::SIGKILL => {
            let either: Vec<String> = memory.into_iter().chain(cpu).collect();
            (!either.is_empty()).then(|| format!("perhaps out of {}", either.join(" or ")))
        }
        libc::SIGSEGV | libc::SIGBUS | libc::SIGABRT | libc::SIGILL | libc::SIGTRAP => {
            memory.map(|memory| format!("perhaps out of {memory}"))
        }
        _ => None,
    }
}

/// One sentence on an exception that may come from a sandbox's rules.
pub(super) fn hint(stderr: &str, isolation: &Isolation) -> Option<String> {
    let limits = &isolation.limits;
    let of = |key: &str, value: u64| format!("(code_execution.isolation.{key} is {value})");
    if let (Some(mb), true) = (limits.memory_mb, stderr.contains("MemoryError")) {
        let of = of("memory_mb", mb);
        return Some(format!(
            "The script reached its memory limit {of}: work on less at a time."
        ));
    }
    if stderr.contains("can't start new thread") {
        let threads = "a thread could not be started";
        let memory = limits.memory_mb.map(|mb| {
            format!(
                "each takes the size of its stack, mostly 8 MB, of the memory {}",
                of("memory_mb", mb)
            )
        });
        let processes = limits
            .processes
            .map(|n| format!("processes and threads are limited {}", of("processes", n)));
        let why: Vec<String> = memory.into_iter().chain(processes).collect();
        return (!why.is_empty())
            .then(|| format!("In this sandbox {threads}: {}.", why.join(", and ")));
    }
    if let (Some(mb), true) = (limits.file_mb, stderr.contains("File too large")) {
        return Some(format!(
            "A file grew larger than it may {}.",
            of("file_mb", mb)
        ));
    }
    if let (Some(n), true) = (limits.open_files, stderr.contains("Too many open files")) {
        return Some(format!(
            "More files were open than may be {}: close them, or use with.",
            of("open_files", n)
        ));
    }
    let no_names = [
        "Temporary failure in name resolution",
        "Name or service not known",
    ];
    if !isolation.network && no_names.iter().any(|text| stderr.contains(text)) {
        return Some("This sandbox has no network: use the tools instead.".into());
    }
    if stderr.contains("PermissionError") {
        let places = match isolation.write_cwd {
            true => "the working directory and temporary files",
            false => "temporary files",
        };
        let network = if isolation.network {
            ""
        } else {
            ", and has no network"
        };
        return Some(format!(
            "This script runs in a sandbox: it can write {places}{network}."
        ));
    }
    None
}

/// Prepares what `isolation` asks for, for a script in `place`.
pub(super) fn prepare(isolation: &Isolation, place: &Place<'_>) -> Result<Prepared, Refusal> {
    let mut report = Report {
        requested: isolation.level.name(),
        ..Report::default()
    };
    let require = isolation.require;
    let confine = match isolation.level {
        IsolationLevel::None => Confine::none(),
        IsolationLevel::Guard => Confine::guard(require),
        IsolationLevel::Sandbox => {
            Confine::sandbox(&sandbox(isolation, place), require).map_err(|message| Refusal {
                message,
                report: None,
            })?
        }
    };
    let limits = limits(&isolation.limits, &mut report);
    let missing = [confine.known_missing(), report.missing.clone()].concat();
    if require && !missing.is_empty() {
        let message = format!(
            "isolation is required and cannot be had here: {}",
            missing.join("; ")
        );
        let report = Report {
            applied: Vec::new(),
            missing,
            ..report
        };
        return Err(Refusal {
            message,
            report: Some(report),
        });
    }
    Ok(Prepared {
        confine,
        limits,
        report,
    })
}

impl Report {
    /// The result's `isolation`: with what the child has done.
    pub(super) fn with(mut self, confinement: &Confinement) -> Report {
        self.applied
            .splice(..0, confinement.applied.iter().cloned());
        self.missing
            .splice(..0, confinement.missing.iter().cloned());
        self
    }

    pub(super) fn to_json(&self) -> String {
        let mut report = json::ObjectWriter::default();
        report
            .string("requested", self.requested)
            .raw("applied", json::string_array(&self.applied))
            .raw("missing", json::string_array(&self.missing));
        report.finish()
    }
}

fn sandbox(isolation: &Isolation, place: &Place<'_>) -> Sandbox {
    let mut paths = vec![PathRule::new(place.stage, Access::Stage)];
    // Whoever runs in the root directory, as services do, does not mean that everything may be written.
    if isolation.write_cwd && place.cwd.parent().is_some() {
        paths.push(PathRule::new(place.cwd, Access::Write));
    }
    paths.extend(DEVICES.map(|path| PathRule::new(path, Access::Device)));
    paths.push(PathRule::new(SHARED_MEMORY, Access::SharedMemory));
    let named = |path: &PathBuf, access, key| PathRule {
        key: Some(key),
        ..PathRule::new(path, access)
    };
    let write = isolation.write.iter();
    paths.extend(write.map(|path| named(path, Access::Write, WRITE_KEY)));
    if let Some(read) = &isolation.read {
        let read = read.iter();
        paths.extend(read.map(|path| named(path, Access::Read, READ_KEY)));
        paths.extend(SYSTEM.map(|path| PathRule::new(path, Access::Read)));
        let roots = place.interpreter.roots.iter();
        paths.extend(roots.map(|path| PathRule::new(path, Access::Read)));
    }
    Sandbox {
        paths,
        restrict_reading: isolation.read.is_some(),
        network: isolation.network,
        restrict_unix_sockets: !isolation.network && !isolation.unix_sockets,
    }
}

/// The limits as the kernel knows them. What it does not enforce is missing.
fn limits(limits: &Limits, report: &mut Report) -> Vec<Limit> {
    const MB: u64 = 1 << 20;
    let mut set = Vec::new();
    let mut limit = |resource, soft, hard, told: Result<&str, &str>| {
        set.push(Limit::at_most(resource, soft, hard));
        match told {
            Ok(applied) => report.applied.push(applied.to_string()),
            Err(missing) => report.missing.push(missing.to_string()),
        }
    };
    if let Some(mb) = limits.memory_mb {
        let told = match cfg!(target_os = "linux") {
            true => Ok("memory_mb"),
            false => Err("memory_mb: this system does not bound what a process maps"),
        };
        limit(libc::RLIMIT_DATA as i32, mb * MB, mb * MB, told);
    }
    if let Some(seconds) = limits.cpu_seconds {
        // SIGXCPU first; whoever ignores it is killed a second later.
        let told = Ok("cpu_seconds");
        limit(libc::RLIMIT_CPU as i32, seconds, seconds + 1, told);
    }
    if let Some(count) = limits.processes {
        let told = match own_uid() == 0 {
            true => Err("processes: the system spares root of this limit"),
            false => {
                Ok("processes: approximate, since all processes and threads of the user count")
            }
        };
        limit(libc::RLIMIT_NPROC as i32, count, count, told);
    }
    if let Some(mb) = limits.file_mb {
        limit(libc::RLIMIT_FSIZE as i32, mb * MB, mb * MB, Ok("file_mb"));
    }
    if let Some(count) = limits.open_files {
        limit(libc::RLIMIT_NOFILE as i32, count, count, Ok("open_files"));
    }
    set
}
