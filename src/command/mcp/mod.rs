//! `ptc mcp`: a server of the Model Context Protocol on standard input and output, with the one tool `execute_code`.
//!
//! | file | what it is for |
//! |---|---|
//! | `wire.rs` | JSON-RPC in lines: framing, messages, errors |
//! | `outbox.rs` | what goes to the client, by one thread |
//! | `session.rs` | the state of the conversation, versions, methods |
//! | `tool.rs` | how the tool is listed, and its arguments |
//! | `execute.rs`, `progress.rs` | scripts that run, and what is told of them meanwhile |
//! | `reply.rs` | answers, alone or in a batch |
//!
//! One thread reads lines, one writes them, one deals with what they say, and each script has one. The end of standard
//! input, a closed standard output or a signal ends the server: scripts are cancelled, nothing of them is left, and the
//! exit status is 0. After a signal their requests are still answered; a client that has left hears of them no more. A
//! second signal ends the server at once, and the kernel ends the scripts.

mod execute;
mod outbox;
mod progress;
mod reply;
mod session;
mod tool;
mod wire;

use super::args::{self, Given, Known};
use super::setup::{self, option};
use super::Refusal::{self, Failure};
use super::{print, say, status, Command};
use crate::json::{self, Value};
use crate::sys::interrupt::on_interrupt;
use crate::sys::thread::spawn_blocked;
use crate::{Engine, Host};
use execute::Executor;
use outbox::Outbox;
use session::Session;
use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::sync::Arc;
use std::time::Duration;
use tool::Offer;
use wire::Line;

pub(super) const COMMAND: Command = Command {
    name: "mcp",
    usage: "ptc mcp [OPTIONS]",
    purpose: "serve execute_code to a client of the Model Context Protocol",
    help: HELP,
    run: mcp,
};

const HELP: &str = concat!(
    "\
ptc mcp: a server of the Model Context Protocol (2025-06-18, 2025-03-26, 2024-11-05) on standard input and output. Its one
tool, execute_code, runs Python scripts that call the tools which are given here.

usage: ptc mcp [OPTIONS]

",
    setup::options_help!(),
    "  --isolation none|guard|sandbox
                           how far scripts are kept from the rest of the machine, default guard
  --timeout SECONDS        wall time of a script, default 300
  --max-tool-calls N       default 50, in each script

It ends with standard input, or with SIGTERM or SIGINT; scripts that run then are ended with it.
exit status: 0 ended, 1 could not start, 2 bad usage
"
);

/// Clients kill a server two seconds after they have closed its input: a script that does not end by itself has to be
/// gone before.
const KILL_GRACE: &str = "1";
/// How long a client may take nothing of what was still to be said.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What the server's one loop hears of.
enum Input {
    Line(Line),
    End(End),
}

/// Why the session ends.
#[derive(Clone, Copy)]
enum End {
    /// The client has closed its side, or is gone altogether. Clients break over a message that comes afterwards.
    Left,
    /// Somebody ends the server, and the client may still listen.
    Signal,
}

fn mcp(arguments: Vec<String>) -> Result<u8, Refusal> {
    let given = args::parse(arguments, &known_options())?;
    if setup::wants_help(&given) {
        return print(HELP);
    }
    setup::refuse_operands(&given)?;
    let (tools, mut config) = setup::engine_parts(&given)?;
    settle(&mut config, &given)?;
    let outbox = Arc::new(Outbox::default());
    let (sender, inputs) = sync_channel(1);
    // Threads made from here on leave the signals to this one.
    end_on_signals(&outbox, &sender)?;
    let engine = Engine::new(&config.to_string(), Host::new().patient())?;
    let offer = Offer::new(&engine)?;
    start_writer(&outbox, &sender)?;
    start_reader(&outbox, sender)?;
    if io::stdin().is_terminal() {
        say("waiting for a client of the Model Context Protocol on standard input; Ctrl-D ends it");
    }
    let executor = Executor::new(engine, tools);
    converse(Session::new(Arc::clone(&outbox), executor, offer), &inputs);
    outbox.finish(LAST_WORDS);
    Ok(status::SUCCESS)
}

fn known_options() -> Vec<Known> {
    let own = [
        option("--isolation", Some("none|guard|sandbox")),
        option("--timeout", Some("SECONDS")),
        option("--max-tool-calls", Some("N")),
    ];
    // There is nothing but JSON here.
    let general = setup::OPTIONS.iter().filter(|o| o.name != "--json");
    general.chain(&own).copied().collect()
}

/// Puts into `config` what would be options of a run elsewhere, so that the definition tells of it too.
fn settle(config: &mut Value, given: &Given) -> Result<(), Refusal> {
    setup::add_session(config, given);
    let options = setup::options(given)?;
    let options = json::parse(&options).map_err(Failure)?;
    let code = config.get("code_execution").cloned();
    let mut code = code.unwrap_or_else(|| Value::Object(Vec::new()));
    for key in ["timeout", "max_tool_calls"] {
        if let Some(value) = options.get(key) {
            setup::set(&mut code, key, value.clone());
        }
    }
    if code.get("kill_grace").is_none() {
        setup::set(&mut code, "kill_grace", Value::Number(KILL_GRACE.into()));
    }
    setup::set(config, "code_execution", code);
    Ok(())
}

/// The first signal ends the session, the second one the process.
fn end_on_signals(outbox: &Arc<Outbox>, inputs: &SyncSender<Input>) -> Result<(), Refusal> {
    let (outbox, inputs) = (Arc::clone(outbox), inputs.clone());
    let came = AtomicBool::new(false);
    let ending = move || {
        if came.swap(true, Ordering::SeqCst) {
            std::process::exit(status::INTERRUPTED.into());
        }
        outbox.begin_end();
        let (inputs, end) = (inputs.clone(), Input::End(End::Signal));
        // Not on this thread, which has to hear of a second signal. Without a thread the next signal does it.
        let _ = spawn_blocked("ptc-mcp-end", move || drop(inputs.send(end)));
    };
    on_interrupt(ending).map_err(|e| Failure(format!("cannot wait for signals: {e}")))
}

fn start_writer(outbox: &Arc<Outbox>, inputs: &SyncSender<Input>) -> Result<(), Refusal> {
    let (outbox, inputs) = (Arc::clone(outbox), inputs.clone());
    let write = move || {
        // Whoever closes that end has gone; there is nobody to be told.
        if outbox.write_to(&mut io::stdout()).is_err() {
            let _ = inputs.send(Input::End(End::Left));
        }
    };
    start("ptc-mcp-out", write)
}

fn start_reader(outbox: &Arc<Outbox>, inputs: SyncSender<Input>) -> Result<(), Refusal> {
    let outbox = Arc::clone(outbox);
    let read = move || {
        let mut stream = io::stdin().lock();
        loop {
            let input = match wire::next_line(&mut stream, wire::MAX_LINE) {
                Ok(Some(line)) => Input::Line(line),
                Ok(None) => Input::End(End::Left),
                Err(e) => {
                    say(&format!("cannot read standard input: {e}"));
                    Input::End(End::Left)
                }
            };
            if outbox.is_ending() {
                // By a signal, which is not to wait for what a client still has to say.
                return;
            }
            let is_end = matches!(input, Input::End(_));
            if is_end {
                outbox.begin_end();
            }
            if inputs.send(input).is_err() || is_end {
                return;
            }
        }
    };
    start("ptc-mcp-in", read)
}

fn start(name: &str, body: impl FnOnce() + Send + 'static) -> Result<(), Refusal> {
    let started = spawn_blocked(name, body);
    started
        .map(drop)
        .map_err(|e| Failure(format!("cannot start a thread: {e}")))
}

/// Deals with what comes until the end, and then ends what still runs.
fn converse(mut session: Session, inputs: &Receiver<Input>) {
    let end = loop {
        match inputs.recv() {
            Ok(Input::Line(line)) => session.receive(line),
            Ok(Input::End(end)) => break end,
            Err(_) => break End::Left,
        }
    };
    match end {
        End::Left => session.end("the client has left", false),
        End::Signal => session.end("the server was ended", true),
    }
}
