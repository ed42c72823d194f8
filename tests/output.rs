//! What a script writes, at every border: sizes of reads and of pipes, what is kept of it, several writers at once.

mod support;

use support::*;

/// Writes `bytes` past Python's own buffers, however many calls that takes.
const WRITE: &str = "
import os
def write(data, fd=1):
    left = memoryview(data)
    while left:
        left = left[os.write(fd, left):]
";

fn run_with(settings: &str, code: &str) -> Ran {
    let config = format!(r#"{{"code_execution":{{{settings}}}}}"#);
    run(&config, "{}", &format!("{WRITE}{code}"))
}

#[test]
fn ten_megabytes_without_a_line_end_come_out_of_both_streams() {
    let code = "
import threading
threads = [threading.Thread(target=write, args=(b'x' * 10_000_000, fd)) for fd in (1, 2)]
for t in threads: t.start()
for t in threads: t.join()
os._exit(1)";
    let ran = run_with("", code);
    assert_eq!(ran.json["stdout_bytes"], 10_000_000);
    assert_eq!(ran.json["stderr_bytes"], 10_000_000);
    assert!(ran
        .output()
        .contains("9950000 of 10000000 bytes are missing here"));
    assert!(ran
        .output()
        .contains("9990000 of 10000000 bytes are missing here"));
}

#[test]
fn a_character_of_four_bytes_lies_whole_across_every_border() {
    // 64 KiB: a pipe, and one read of the engine. 40 % and 60 %: what is kept.
    let code = "
for border in (1 << 16, 1 << 17):
    for shift in range(-4, 5):
        write(b'x' * (border + shift) + '\\N{PARTY POPPER}'.encode())
        write(b'\\n')
";
    let ran = run_with(r#""max_stdout_bytes":10000000"#, code);
    let text = ran.printed();
    assert_eq!(text.matches('🎉').count(), 18);
    assert!(!text.contains('\u{fffd}'));
    for shift in 0..5 {
        let code = format!("write(b'x' * {shift} + '\\N{{PARTY POPPER}}'.encode() * 1000)");
        for limit in 40..44 {
            let ran = run_with(&format!(r#""max_stdout_bytes":{limit}"#), &code);
            assert!(
                !ran.printed().contains('\u{fffd}'),
                "{shift} {limit}: {}",
                ran.printed()
            );
            assert!(ran.printed().ends_with('🎉'));
        }
    }
}

#[test]
fn the_bytes_of_a_character_may_come_one_by_one() {
    let code = "
import time
for byte in '\\N{PARTY POPPER}'.encode() * 3:
    os.write(1, bytes([byte]))
    time.sleep(0.01)
os.write(1, b'\\xf0\\x9f')";
    assert_eq!(run_with("", code).printed(), "🎉🎉🎉\u{fffd}");
}

#[test]
fn a_flood_on_one_stream_starves_neither_the_other_nor_the_clock() {
    for fd in [1, 2] {
        let other = 3 - fd;
        let code = format!(
            "os.write({other}, b'heard\\n')\nwhile True: os.write({fd}, b'flood\\n' * 10000)"
        );
        let ran = run(
            r#"{"code_execution":{"kill_grace":1}}"#,
            r#"{"timeout":2}"#,
            &format!("import os\n{code}"),
        );
        assert_eq!(ran.status(), "timeout");
        assert!(ran.output().contains("heard\n"), "{fd}");
        assert!(ran.output().contains("flood\nflood\n"), "{fd}");
    }
}

#[test]
fn a_full_pipe_is_read_to_its_end_after_the_kill() {
    let code = "
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
write(b'y' * 60_000)
while True: signal.pause()";
    let config = r#"{"code_execution":{"kill_grace":0.1,"max_stdout_bytes":100000}}"#;
    let ran = run(config, r#"{"timeout":2}"#, &format!("{WRITE}{code}"));
    assert_eq!(ran.status(), "timeout");
    assert_eq!(ran.json["stdout_bytes"], 60_000);
}

#[test]
fn what_a_child_writes_after_the_end_of_the_script_is_read_while_it_lives() {
    // The child fills the pipe before the script ends; nobody has read it by then for certain.
    let code = "
pipe = os.pipe()
if os.fork() == 0:
    os.read(pipe[0], 1)
    write(b'late ' * 1000)
    os.write(1, b'and done\\n')
    os._exit(0)
print('in time', flush=True)
os.write(pipe[1], b'x')
os.wait()";
    let ran = run_with("", code);
    assert!(ran.printed().starts_with("in time\nlate late "));
    assert!(ran.printed().ends_with("and done\n"));
}

#[test]
#[cfg(target_os = "linux")]
fn a_stream_that_is_closed_early_costs_no_processor_time() {
    // Whoever waits for a pipe that has ended would turn in a circle until the script does.
    let code = "
import os, time
for fd in (1, 2):
    os.close(fd)
def ticks(pid):
    return sum(map(int, open(f'/proc/{pid}/stat').read().rsplit(') ', 1)[1].split()[11:13]))
host = os.getppid()
before = ticks(host)
time.sleep(1)
os._exit(min(ticks(host) - before, 100))";
    let dir = TempDir::new();
    let script = dir.write("quiet.py", code);
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_ptc"))
        .arg("run")
        .arg(script)
        .arg("--json")
        .output()
        .unwrap();
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let ticks = result["exit_code"].as_i64().unwrap();
    assert!(
        ticks < 10,
        "{ticks} hundredths of a second were spent on waiting: {result}"
    );
}
