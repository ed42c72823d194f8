//! What lies around the engine's process: directories for staging, the program that searches, and the bounds that a
//! container or service manager has set.

use super::{Report, State};
use crate::sys::dir::{self, Dir};
use crate::sys::survey;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

const SECTION: &str = "place";
/// A Python with a few packages needs about as much.
const LITTLE_MEMORY: u64 = 256 << 20;
/// What a script with a pool of workers, and the host, come to.
const FEW_PROCESSES: u64 = 64;

pub(super) fn examine(report: &mut Report) {
    staging(report);
    ripgrep(report);
    process(report);
    bounds(report);
}

/// Where staging directories go, and whether the socket's path fits.
fn staging(report: &mut Report) {
    for place in dir::candidates() {
        let made = Dir::create(std::slice::from_ref(&place), dir::PREFIX);
        match made {
            Ok(made) => {
                let used = made.path().as_os_str().as_bytes().len() + "/s".len();
                let room = survey::socket_room();
                let place = place.display();
                let text = format!(
                    "staging directories go to {place}; the socket's path takes {used} of {room} bytes"
                );
                report.add(SECTION, "TMPDIR", State::Ok, text).value(used);
                return;
            }
            Err(e) => {
                let text = format!("{} is passed over: {e}", place.display());
                let finding = report.add(SECTION, "TMPDIR", State::Warn, text);
                finding.advise("set TMPDIR to a writable directory of your own with a short path");
            }
        }
    }
    let text = "there is no directory for staging";
    let finding = report.add(SECTION, "staging", State::Problem, text);
    finding.advise("set TMPDIR to a writable directory of your own with a short path");
}

fn ripgrep(report: &mut Report) {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_program = |file: &PathBuf| {
        fs::metadata(file).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
    };
    let found = std::env::split_paths(&path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join("rg"))
        .find(is_program);
    match found {
        Some(file) => {
            let text = format!("search_files uses {}", file.display());
            report.add(SECTION, "ripgrep", State::Ok, text).value(true);
        }
        None => {
            let text = "not on PATH: search_files uses Python's re, with the same answers, slower";
            let finding = report.add(SECTION, "ripgrep", State::Warn, text);
            finding.advise("install ripgrep").value(false);
        }
    }
}

/// What this process may do, and what is done to it. Only Linux tells.
fn process(report: &mut Report) {
    let Ok(status) = fs::read_to_string("/proc/self/status") else {
        return;
    };
    let field = |name: &str| {
        let mut lines = status.lines();
        lines.find_map(|line| {
            Some(
                line.strip_prefix(name)?
                    .strip_prefix(':')?
                    .trim()
                    .to_string(),
            )
        })
    };
    let capabilities = field("CapEff").and_then(|digits| u64::from_str_radix(&digits, 16).ok());
    let text = match capabilities {
        None => return,
        Some(0) => "this process has none".to_string(),
        Some(held) => format!(
            "this process has {} of them; isolation takes those from a script that open other processes",
            held.count_ones()
        ),
    };
    let finding = report.add(SECTION, "capabilities", State::Ok, text);
    finding.value(capabilities.unwrap_or_default());
    if field("Seccomp").is_some_and(|mode| mode == "2") {
        let text = "this process is filtered itself, by its container perhaps; what that costs stands under kernel";
        report.add(SECTION, "filter", State::Ok, text);
    }
}

/// The bounds of the control group and of those around it.
fn bounds(report: &mut Report) {
    let Ok(groups) = fs::read_to_string("/proc/self/cgroup") else {
        return;
    };
    let Some(own) = groups.lines().find_map(|line| line.strip_prefix("0::/")) else {
        let text = "no unified hierarchy is visible: bounds that a container has set are not known";
        report.add(SECTION, "cgroup", State::Ok, text);
        return;
    };
    let root = Path::new("/sys/fs/cgroup");
    let folder = root.join(own);
    let memory = lowest(root, &folder, "memory.max");
    let processes = lowest(root, &folder, "pids.max");
    let mebibytes = memory.map(|bytes| bytes >> 20);
    let shown = |bound: Option<u64>| bound.map_or("no bound".to_string(), |n| n.to_string());
    let text = format!(
        "memory (MiB): {}; processes: {}",
        shown(mebibytes),
        shown(processes)
    );
    let is_tight = memory.is_some_and(|bytes| bytes < LITTLE_MEMORY)
        || processes.is_some_and(|n| n < FEW_PROCESSES);
    if is_tight {
        let finding = report.add(SECTION, "cgroup", State::Warn, text);
        finding.advise(
            "scripts share these bounds with the host: raise them, or expect scripts to be killed",
        );
    } else {
        report.add(SECTION, "cgroup", State::Ok, text);
    }
}

/// The lowest of the bounds `name` from `folder` up to `root`.
fn lowest(root: &Path, folder: &Path, name: &str) -> Option<u64> {
    let around = folder.ancestors().take_while(|f| f.starts_with(root));
    let bounds = around.filter_map(|f| fs::read_to_string(f.join(name)).ok()?.trim().parse().ok());
    bounds.min()
}
