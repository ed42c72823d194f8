//! What went wrong with a script, in one line.

use super::isolation;
use crate::config::Isolation;

/// What is said of a script that a signal has ended.
pub(super) fn killed_by(signal: i32, sandbox: Option<&Isolation>) -> String {
    let name = signal_name(signal).map_or_else(
        || format!("signal {signal}"),
        |n| format!("{n} (signal {signal})"),
    );
    match (signal, isolation::limit_behind(signal, sandbox)) {
        (libc::SIGKILL, None) => {
            format!("The script was killed by {name}, not by ptc: perhaps out of memory.")
        }
        (libc::SIGKILL, Some(why)) => {
            format!("The script was killed by {name}, not by ptc: {why}.")
        }
        (_, None) => format!("The script was ended by {name}."),
        (_, Some(why)) => format!("The script was ended by {name}: {why}."),
    }
}

fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL",
        libc::SIGUSR1 => "SIGUSR1",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGUSR2 => "SIGUSR2",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGALRM => "SIGALRM",
        libc::SIGTERM => "SIGTERM",
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGXFSZ => "SIGXFSZ",
        libc::SIGSYS => "SIGSYS",
        _ => return None,
    })
}

/// The line that names the exception that the script has ended by, else the last line of all.
pub(super) fn last_error(stderr: &str, raised: bool) -> Option<String> {
    let last = || stderr.lines().rev().find(|l| !l.trim().is_empty());
    let line = raised
        .then(|| exception_line(stderr))
        .flatten()
        .or_else(last)?;
    let mut line = line.trim().to_string();
    if let Some((at, _)) = line.char_indices().nth(500) {
        line.truncate(at);
        line.push('…');
    }
    Some(line)
}

/// The first line behind the frames of the last traceback. That of a group is drawn with bars, and the tracebacks of
/// its members, further in, are none of their own.
fn exception_line(stderr: &str) -> Option<&str> {
    const ONE: &str = "Traceback (most recent call last):";
    const GROUP: &str = "  + Exception Group Traceback (most recent call last):";
    let lines: Vec<&str> = stderr.lines().collect();
    let begins = |l: &str| l.starts_with(ONE) || l.starts_with(GROUP);
    let at = lines.iter().rposition(|l| begins(l))?;
    let bar = if lines[at].starts_with(GROUP) {
        "  | "
    } else {
        ""
    };
    let behind = lines[at + 1..].iter().filter_map(|l| l.strip_prefix(bar));
    let mut behind = behind.filter(|l| !l.is_empty() && !l.starts_with([' ', '[']));
    behind.next()
}
