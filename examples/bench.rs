//! What `ptc` costs over doing without it, measured side by side: `cargo run --release --example bench [ROW...]`.
//!
//! Each row is a ratio. Its two sides are measured in turns, so that whatever else the machine does hits both, and
//! their medians are divided; what may cost so much more and no more is held to the median of the differences. A table
//! comes first, then one JSON line for each row. The exit status is 1 when a row is over its limit.

use ptc::{Engine, EventKind, Host, Status};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Pairs of measurements in a row; the medians of fewer would move too much.
const PAIRS: usize = 40;

/// Calls in one measurement of a round trip.
const CALLS: usize = 300;

/// One line of the table.
struct Row {
    name: &'static str,
    ours: &'static str,
    reference: &'static str,
    unit: &'static str,
    limit: Limit,
    measure: fn(&Bench) -> Pairs,
}

/// What a row may cost.
#[derive(Clone, Copy)]
enum Limit {
    /// So many times the reference.
    Ratio(f64),
    /// So much more than the reference, in the row's unit.
    More(f64),
}

impl Limit {
    fn holds(self, ratio: f64, more: f64) -> bool {
        match self {
            Limit::Ratio(limit) => ratio <= limit,
            Limit::More(limit) => more <= limit,
        }
    }
}

impl std::fmt::Display for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Limit::Ratio(limit) => write!(f, "{limit:.2}"),
            Limit::More(limit) => write!(f, "+{limit}"),
        }
    }
}

/// What both sides of a row took, in the row's unit.
#[derive(Default)]
struct Pairs {
    ours: Vec<f64>,
    reference: Vec<f64>,
}

impl Pairs {
    /// The median of what our side took more than its neighbour in time: what the machine does for longer than that hits
    /// both, and does not show.
    fn more(&self) -> f64 {
        let both = self.ours.iter().zip(&self.reference);
        median(both.map(|(ours, reference)| ours - reference).collect())
    }
}

const ROWS: [Row; 11] = [
    Row {
        name: "cold",
        ours: "run of print(1)",
        reference: "python3 script.py",
        unit: "ms",
        limit: Limit::Ratio(1.25),
        measure: cold,
    },
    Row {
        name: "call_20",
        ours: "tool call, 20 bytes",
        reference: "socket ping-pong",
        unit: "us",
        limit: Limit::Ratio(1.5),
        measure: |bench| round_trip(bench, 20, CALLS),
    },
    Row {
        name: "call_1k",
        ours: "tool call, 1 KiB",
        reference: "socket ping-pong",
        unit: "us",
        limit: Limit::Ratio(1.5),
        measure: |bench| round_trip(bench, 1 << 10, CALLS),
    },
    Row {
        name: "call_1m",
        ours: "tool call, 1 MiB",
        reference: "socket ping-pong",
        unit: "us",
        limit: Limit::Ratio(1.5),
        measure: |bench| round_trip(bench, 1 << 20, 10),
    },
    Row {
        name: "parallel",
        ours: "32 calls of a 50 ms tool from 32 threads",
        reference: "one call",
        unit: "ms",
        limit: Limit::Ratio(1.5),
        measure: parallel,
    },
    Row {
        name: "output",
        ours: "50 MB printed in lines of 1 KiB",
        reference: "python3 script.py > /dev/null",
        unit: "ms",
        limit: Limit::Ratio(1.5),
        measure: output,
    },
    Row {
        name: "import",
        ours: "run that imports the module",
        reference: "run that imports nothing",
        unit: "ms",
        limit: Limit::More(3.0),
        measure: import,
    },
    Row {
        name: "spawn",
        ours: "start of a script, host with 4 GiB resident",
        reference: "host with 50 MiB",
        unit: "us",
        limit: Limit::Ratio(1.3),
        measure: spawn,
    },
    Row {
        name: "guard",
        ours: "run of pass at level guard",
        reference: "at level none",
        unit: "ms",
        limit: Limit::More(0.3),
        measure: |_| isolated("guard"),
    },
    Row {
        name: "sandbox",
        ours: "run of pass at level sandbox",
        reference: "at level none",
        unit: "ms",
        limit: Limit::More(1.0),
        measure: |_| isolated("sandbox"),
    },
    Row {
        name: "memory",
        ours: "peak memory with 50 MB printed",
        reference: "idle engine",
        unit: "KiB",
        limit: Limit::More(4096.0),
        measure: memory,
    },
];

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    if let [word, mib] = wanted.as_slice() {
        if word == BE_A_HOST {
            return be_a_host(mib.parse().expect("a number of MiB"));
        }
    }
    let bench = Bench::new();
    let unknown = wanted
        .iter()
        .find(|w| ROWS.iter().all(|row| row.name != w.as_str()));
    if let Some(unknown) = unknown {
        let names = ROWS.map(|row| row.name).join(", ");
        eprintln!("bench: there is no row {unknown:?}; rows: {names}");
        std::process::exit(2);
    }
    println!("| row | ptc | median | reference | median | ratio | more | limit | |");
    println!("|---|---|---|---|---|---|---|---|---|");
    let rows = ROWS
        .iter()
        .filter(|row| wanted.is_empty() || wanted.iter().any(|w| w == row.name));
    let mut lines = Vec::new();
    let mut all_hold = true;
    for row in rows {
        let pairs = (row.measure)(&bench);
        let more = pairs.more();
        let (ours, reference) = (median(pairs.ours), median(pairs.reference));
        let ratio = ours / reference;
        let (limit, holds) = (row.limit, row.limit.holds(ratio, more));
        all_hold &= holds;
        let verdict = if holds { "ok" } else { "over" };
        println!(
            "| {} | {} | {ours:.2} {unit} | {} | {reference:.2} {unit} | {ratio:.2} | {more:+.2} {unit} | {limit} | {verdict} |",
            row.name,
            row.ours,
            row.reference,
            unit = row.unit,
        );
        lines.push(format!(
            r#"{{"row":"{}","unit":"{}","ptc":{ours:.3},"reference":{reference:.3},"ratio":{ratio:.3},"more":{more:.3},"limit":"{limit}","ok":{holds}}}"#,
            row.name, row.unit
        ));
    }
    println!();
    lines.iter().for_each(|line| println!("{line}"));
    std::process::exit(i32::from(!all_hold));
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() % 2 {
        0 => (values[middle - 1] + values[middle]) / 2.0,
        _ => values[middle],
    }
}

/// What all rows use: an engine, the interpreter that it runs, and a folder for the reference's scripts.
struct Bench {
    engine: Engine,
    python: PathBuf,
    folder: PathBuf,
}

const CONFIG: &str = r#"{
    "code_execution": {"max_tool_calls": 100000, "max_parallel_calls": 64},
    "tools": [
        {"name": "echo", "description": "Returns its text.",
         "input_schema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}},
        {"name": "pause", "description": "Takes 50 ms.", "input_schema": {"type": "object", "properties": {}}}
    ]
}"#;

impl Bench {
    fn new() -> Bench {
        let engine = Engine::new(CONFIG, host()).expect("the engine of the benchmark");
        let folder = std::env::temp_dir().join(format!("ptc-bench-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder for scripts");
        let outcome = run(&engine, "import sys; print(sys.executable)");
        Bench {
            engine,
            python: PathBuf::from(outcome.trim_end()),
            folder,
        }
    }

    /// A script for the bare interpreter.
    fn script(&self, name: &str, code: &str) -> PathBuf {
        let path = self.folder.join(name);
        fs::write(&path, code).expect("a script in the folder");
        path
    }

    /// A bare run of `script` with its output going to `stdout`.
    fn bare(&self, script: &Path, stdout: Stdio) -> Command {
        let mut command = Command::new(&self.python);
        command.arg(script).stdin(Stdio::null()).stdout(stdout);
        command
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn host() -> Host {
    Host::new().dispatch(|call| {
        let answered = match call.tool() {
            "echo" => call.reply(text_of(call.args())),
            _ => {
                let id = call.id();
                call.defer().map(|()| {
                    std::thread::spawn(move || {
                        std::thread::sleep(Duration::from_millis(50));
                        ptc::reply(id, "null").expect("the run waits for its call");
                    });
                })
            }
        };
        answered.expect("an open call can be answered");
    })
}

/// The value in `{"text":"…"}`, as JSON.
fn text_of(args: &str) -> &str {
    let colon = args.find(':').expect("one argument");
    args[colon + 1..args.len() - 1].trim()
}

/// Runs `code` and returns what it printed.
fn run(engine: &Engine, code: &str) -> String {
    let outcome = engine.execute(code, "").expect("a run");
    assert_eq!(outcome.status(), Status::Success, "{}", outcome.json());
    outcome.output().to_string()
}

fn in_turns(
    pairs: usize,
    mut ours: impl FnMut() -> f64,
    mut reference: impl FnMut() -> f64,
) -> Pairs {
    // The first of each warms caches up and does not count.
    ours();
    reference();
    let mut found = Pairs::default();
    for _ in 0..pairs {
        found.reference.push(reference());
        found.ours.push(ours());
    }
    found
}

fn timed(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64() * 1e3
}

fn cold(bench: &Bench) -> Pairs {
    let script = bench.script("one.py", "print(1)\n");
    in_turns(
        PAIRS,
        || timed(|| assert_eq!(run(&bench.engine, "print(1)\n"), "1\n")),
        || {
            timed(|| {
                let output = bench
                    .bare(&script, Stdio::piped())
                    .output()
                    .expect("python");
                assert_eq!(output.stdout, b"1\n");
            })
        },
    )
}

/// Both sides time themselves in Python, so that the start of the interpreter is not in it.
fn round_trip(bench: &Bench, size: usize, calls: usize) -> Pairs {
    let text = "x".repeat(size);
    let timing = format!(
        "\nimport time\ntext = '{text}'\nassert call(text) == text\nstart = time.perf_counter()\n\
         for _ in range({calls}):\n    call(text)\nprint((time.perf_counter() - start) * 1e6 / {calls})\n"
    );
    let ours = format!("from hermes_tools import echo as call{timing}");
    let socket = bench.folder.join("echo");
    let _ = fs::remove_file(&socket);
    let listener = UnixListener::bind(&socket).expect("a socket");
    let client = format!(
        "import json, socket\ns = socket.socket(socket.AF_UNIX)\ns.connect('{}')\nf = s.makefile('rb')\n\
         def call(text):\n    s.sendall(json.dumps({{'id': 1, 'tool': 'echo', 'args': {{'text': text}}}}).encode() + b'\\n')\n    \
         return json.loads(f.readline())['args']['text']\n{timing}",
        socket.display()
    );
    let script = bench.script("ping.py", &client);
    let number = |text: &str| {
        text.trim()
            .parse::<f64>()
            .expect("a number of microseconds")
    };
    in_turns(
        PAIRS,
        || number(&run(&bench.engine, &ours)),
        || {
            let child = bench.bare(&script, Stdio::piped()).spawn().expect("python");
            let (stream, _) = listener.accept().expect("a connection");
            echo(stream);
            let output = child.wait_with_output().expect("python ends");
            number(&String::from_utf8_lossy(&output.stdout))
        },
    )
}

/// Sends every line back until the peer hangs up.
fn echo(mut stream: UnixStream) {
    let mut reader = BufReader::with_capacity(1 << 16, stream.try_clone().expect("a descriptor"));
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).unwrap_or(0) > 0 {
        if stream.write_all(&line).is_err() {
            return;
        }
        line.clear();
    }
}

fn parallel(bench: &Bench) -> Pairs {
    let program = |threads: usize| {
        format!(
            "import threading, time\nfrom hermes_tools import pause\n\
             ts = [threading.Thread(target=pause) for _ in range({threads})]\nstart = time.perf_counter()\n\
             for t in ts: t.start()\nfor t in ts: t.join()\nprint((time.perf_counter() - start) * 1e3)\n"
        )
    };
    let (many, one) = (program(32), program(1));
    let number = |text: String| {
        text.trim()
            .parse::<f64>()
            .expect("a number of milliseconds")
    };
    in_turns(
        PAIRS,
        || number(run(&bench.engine, &many)),
        || number(run(&bench.engine, &one)),
    )
}

/// 50 MB in lines of 1 KiB.
const PRINTING: &str = "line = 'x' * 1023\nfor _ in range(48828):\n    print(line)\n";

fn output(bench: &Bench) -> Pairs {
    let script = bench.script("print.py", PRINTING);
    in_turns(
        PAIRS,
        || timed(|| drop(run(&bench.engine, PRINTING))),
        || {
            timed(|| {
                let status = bench.bare(&script, Stdio::null()).status();
                assert!(status.expect("python").success());
            })
        },
    )
}

fn import(bench: &Bench) -> Pairs {
    in_turns(
        PAIRS,
        || timed(|| drop(run(&bench.engine, "import hermes_tools\n"))),
        || timed(|| drop(run(&bench.engine, "pass\n"))),
    )
}

/// Runs at `level` and at none. What is looked for is a hundredth of a run, so many are needed.
fn isolated(level: &str) -> Pairs {
    let engine = |level: &str| {
        let config = format!(r#"{{"code_execution": {{"isolation": "{level}"}}}}"#);
        Engine::new(&config, Host::new()).expect("an engine")
    };
    let (ours, reference) = (engine(level), engine("none"));
    let pass = |engine: &Engine| timed(|| drop(run(engine, "pass\n")));
    in_turns(10 * PAIRS, || pass(&ours), || pass(&reference))
}

/// The argument with which this program is a host of a certain size and nothing else.
const BE_A_HOST: &str = "--host-of-mib";

/// Two hosts, alike but for their size, start scripts in turns.
fn spawn(_: &Bench) -> Pairs {
    let mut large = SizedHost::start(4096);
    let mut small = SizedHost::start(50);
    // Each takes a millisecond, of which a busy machine makes two: many are needed.
    in_turns(5 * PAIRS, || large.measure(), || small.measure())
}

/// A process of its own that has so much memory in use, and starts a script whenever it is asked to.
struct SizedHost {
    process: std::process::Child,
    answers: BufReader<std::process::ChildStdout>,
}

impl SizedHost {
    fn start(mib: usize) -> SizedHost {
        let this = std::env::current_exe().expect("the path of this program");
        let mut process = Command::new(this)
            .args([BE_A_HOST, &mib.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a second host");
        let answers = BufReader::new(process.stdout.take().expect("its output"));
        SizedHost { process, answers }
    }

    fn measure(&mut self) -> f64 {
        let requests = self.process.stdin.as_mut().expect("its input");
        requests.write_all(b"start\n").expect("it listens");
        let mut answer = String::new();
        self.answers.read_line(&mut answer).expect("it answers");
        answer.trim().parse().expect("a number of microseconds")
    }
}

impl Drop for SizedHost {
    fn drop(&mut self) {
        // Its input ends, and so does it.
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// For each line of standard input: the time from the call to the script's `started` event.
fn be_a_host(mib: usize) {
    let ballast = vec![1u8; mib << 20];
    let engine = Engine::new(CONFIG, Host::new()).expect("an engine");
    for _request in std::io::stdin().lines() {
        let start = Instant::now();
        let run = engine.start("pass", "").expect("a run");
        let first = run.next_event(None).expect("events are pulled");
        assert_eq!(first.map(|event| event.kind()), Some(EventKind::Started));
        println!("{}", start.elapsed().as_secs_f64() * 1e6);
        run.cancel(None);
        run.wait(None).expect("it ends");
    }
    assert_eq!(ballast.last(), Some(&1));
}

/// The peak of this process before and after runs that print 50 MB; a peak never falls, so one pair is all there is.
fn memory(bench: &Bench) -> Pairs {
    run(&bench.engine, "print(1)");
    // The kernel's own mark is set back where that is allowed (Linux 4.0, proc(5) clear_refs).
    let _ = fs::write("/proc/self/clear_refs", "5");
    let idle = peak_kib();
    for _ in 0..3 {
        run(&bench.engine, PRINTING);
    }
    Pairs {
        ours: vec![peak_kib()],
        reference: vec![idle],
    }
}

/// `VmHWM` of `/proc/self/status`; 0 where there is none.
fn peak_kib() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let digits = line.and_then(|line| line.split_whitespace().nth(1));
    digits.and_then(|kib| kib.parse().ok()).unwrap_or(0.0)
}
