//! Why a program cannot be executed, found by looking at the file.
//!
//! The error numbers of exec mislead: "no such file" is also what a script gets whose interpreter is missing and a
//! program whose loader is missing; "permission denied" is also what a directory gets.

use std::ffi::{CString, OsStr};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::command::{Command, Limit};

/// The kernel's bound for one argument or one variable.
const LONGEST_STRING: usize = 128 * 1024;

/// One line on why exec failed with `errno`.
pub(super) fn exec(command: &Command, errno: i32) -> String {
    let path = Path::new(OsStr::from_bytes(command.program.as_bytes()));
    let error = io::Error::from_raw_os_error(errno);
    let found = match errno {
        libc::E2BIG => Some(too_big(command)),
        libc::ENOENT | libc::ENOTDIR => missing(path),
        libc::EACCES => forbidden(path),
        libc::ENOEXEC => unknown_format(path),
        _ => None,
    };
    match found {
        Some(found) => format!("cannot execute {}: {found} ({error})", path.display()),
        None => format!("cannot execute {}: {error}", path.display()),
    }
}

/// The name of a resource limit as the command's author would write it.
pub(super) fn limit(command: &Command, resource: i32) -> String {
    // Each has the type that its C library gives it.
    let names = [
        (libc::RLIMIT_AS as i32, "RLIMIT_AS"),
        (libc::RLIMIT_CORE as i32, "RLIMIT_CORE"),
        (libc::RLIMIT_CPU as i32, "RLIMIT_CPU"),
        (libc::RLIMIT_DATA as i32, "RLIMIT_DATA"),
        (libc::RLIMIT_FSIZE as i32, "RLIMIT_FSIZE"),
        (libc::RLIMIT_NOFILE as i32, "RLIMIT_NOFILE"),
        (libc::RLIMIT_NPROC as i32, "RLIMIT_NPROC"),
    ];
    let Some((_, name)) = names.iter().find(|(number, _)| *number == resource) else {
        return format!("number {resource}");
    };
    match command
        .limits
        .iter()
        .find(|limit| limit.resource == resource)
    {
        Some(Limit { soft, hard, .. }) => format!("{name} to {soft} (hard {hard})"),
        None => (*name).to_string(),
    }
}

fn missing(path: &Path) -> Option<String> {
    if fs::symlink_metadata(path).is_err() {
        return Some("there is no such file".to_string());
    }
    if fs::metadata(path).is_err() {
        let target = fs::read_link(path).unwrap_or_default();
        return Some(format!(
            "it is a link to {}, which does not exist",
            target.display()
        ));
    }
    match needs(path)? {
        Needs::Interpreter(line) => Some(format!(
            "the file exists, but the interpreter in its first line, {}, does not",
            line.display()
        )),
        Needs::Loader(loader) => Some(format!(
            "the file exists, but the loader that it asks for, {}, does not: it was built for another C library or system",
            loader.display()
        )),
    }
}

fn forbidden(path: &Path) -> Option<String> {
    let meta = match fs::metadata(path) {
        Ok(meta) => meta,
        Err(_) => return Some("a directory on the way to it cannot be searched".to_string()),
    };
    if meta.is_dir() {
        return Some("it is a directory".to_string());
    }
    if !meta.is_file() {
        return Some("it is not a regular file".to_string());
    }
    if meta.permissions().mode() & 0o111 == 0 {
        return Some("it is not marked executable (chmod +x)".to_string());
    }
    if is_on_noexec_mount(path) {
        return Some("it lies on a file system that is mounted noexec".to_string());
    }
    match needs(path) {
        Some(Needs::Interpreter(file) | Needs::Loader(file)) => {
            forbidden(&file).map(|why| format!("it needs {}, and {why}", file.display()))
        }
        None => None,
    }
}

fn unknown_format(path: &Path) -> Option<String> {
    let start = head(path)?;
    if start.is_empty() {
        return Some("the file is empty".to_string());
    }
    if !start.starts_with(b"\x7fELF") {
        return Some(
            "it is neither a program nor a script whose first line begins with #!".to_string(),
        );
    }
    Some("it is a program for another processor, or damaged".to_string())
}

/// Names, never values: an environment may hold secrets.
fn too_big(command: &Command) -> String {
    let name = |s: &CString| {
        let bytes = s.as_bytes();
        let end = bytes.iter().position(|b| *b == b'=').unwrap_or(0);
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    };
    let long = |s: &&CString| s.as_bytes_with_nul().len() > LONGEST_STRING;
    if let Some(variable) = command.envp.iter().find(long) {
        let size = variable.as_bytes().len();
        return format!(
            "the environment variable {} takes {size} bytes, more than the {LONGEST_STRING} that the system allows for one",
            name(variable)
        );
    }
    if let Some(at) = command.argv.iter().position(|s| long(&s)) {
        return format!("argument {at} is longer than the {LONGEST_STRING} bytes that the system allows for one");
    }
    let total: usize = command
        .argv
        .iter()
        .chain(&command.envp)
        .map(|s| s.as_bytes_with_nul().len())
        .sum();
    let largest = command
        .envp
        .iter()
        .max_by_key(|s| s.as_bytes().len())
        .map(name)
        .unwrap_or_default();
    format!("arguments and environment take {total} bytes together, more than the system allows (largest variable: {largest})")
}

fn is_on_noexec_mount(path: &Path) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else {
        return false;
    };
    // SAFETY: statvfs is plain data, and the call fills it or fails.
    unsafe {
        let mut stat: libc::statvfs = std::mem::zeroed();
        libc::statvfs(path.as_ptr(), &mut stat) == 0 && is_noexec(&stat)
    }
}

#[cfg(target_os = "linux")]
fn is_noexec(stat: &libc::statvfs) -> bool {
    stat.f_flag & libc::ST_NOEXEC != 0
}

#[cfg(not(target_os = "linux"))]
fn is_noexec(_stat: &libc::statvfs) -> bool {
    false
}

/// The other file that executing this one takes.
enum Needs {
    Interpreter(PathBuf),
    Loader(PathBuf),
}

fn needs(path: &Path) -> Option<Needs> {
    let start = head(path)?;
    if let Some(line) = start.strip_prefix(b"#!") {
        let line = line.split(|b| *b == b'\n').next()?;
        // A file with DOS line ends asks for an interpreter whose name ends in \r: shown as it is, quoted by the caller.
        let name = line
            .trim_ascii_start()
            .split(|b| *b == b' ' || *b == b'\t')
            .next()?;
        return Some(Needs::Interpreter(PathBuf::from(OsStr::from_bytes(name))));
    }
    elf_loader(path, &start).map(Needs::Loader)
}

fn head(path: &Path) -> Option<Vec<u8>> {
    // Opening a FIFO would wait for a writer.
    if !fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let mut start = Vec::new();
    File::open(path)
        .ok()?
        .take(4096)
        .read_to_end(&mut start)
        .ok()?;
    Some(start)
}

/// The PT_INTERP entry of a 64-bit program of this machine's byte order.
fn elf_loader(path: &Path, start: &[u8]) -> Option<PathBuf> {
    const PT_INTERP: u32 = 3;
    let is_64_bit = start.starts_with(b"\x7fELF\x02");
    if !is_64_bit {
        return None;
    }
    let table = u64::from_ne_bytes(start.get(32..40)?.try_into().ok()?) as usize;
    let entry_size = u16::from_ne_bytes(start.get(54..56)?.try_into().ok()?) as usize;
    let entries = u16::from_ne_bytes(start.get(56..58)?.try_into().ok()?) as usize;
    for index in 0..entries {
        let entry = start.get(table.checked_add(index * entry_size)?..)?;
        let kind = u32::from_ne_bytes(entry.get(..4)?.try_into().ok()?);
        if kind == PT_INTERP {
            let offset = u64::from_ne_bytes(entry.get(8..16)?.try_into().ok()?);
            let size = u64::from_ne_bytes(entry.get(32..40)?.try_into().ok()?).min(4096);
            let mut file = File::open(path).ok()?;
            file.seek(SeekFrom::Start(offset)).ok()?;
            let mut name = Vec::new();
            file.take(size).read_to_end(&mut name).ok()?;
            let name = name.split(|b| *b == 0).next()?;
            return Some(PathBuf::from(OsStr::from_bytes(name)));
        }
    }
    None
}
