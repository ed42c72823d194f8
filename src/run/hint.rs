//! One sentence for the model on the mistakes that models make most.

use super::isolation;
use super::remains::{Calls, Setting, Status};

/// What a hint is made from.
pub(crate) struct Facts<'a> {
    pub status: Status,
    /// False: not a line of the script was executed.
    pub started: bool,
    pub stdout: &'a str,
    pub stderr: &'a str,
    pub setting: &'a Setting,
    pub calls: &'a Calls,
}

/// The hint for this ending, if it is a known mistake.
pub(crate) fn hint(facts: &Facts<'_>) -> Option<String> {
    match facts.status {
        Status::Success => never_awaited(facts).or_else(|| silent(facts)),
        Status::Error => failed(facts)
            .or_else(|| sandboxed(facts))
            .or_else(|| not_compiled(facts)),
        Status::Timeout => waited_for_a_tool(facts),
        Status::Interrupted => None,
    }
}

fn silent(facts: &Facts<'_>) -> Option<String> {
    facts.stdout.trim().is_empty().then(|| {
        "The script printed nothing: only what it prints comes back, so print the result."
            .to_string()
    })
}

/// Python warns of it and the script goes on, with a coroutine in the place of its result.
fn never_awaited(facts: &Facts<'_>) -> Option<String> {
    let name = between(
        facts.stderr,
        "RuntimeWarning: coroutine '",
        "' was never awaited",
    )?;
    Some(format!(
        "The coroutine {name} was never awaited, so it did nothing: write await before the call."
    ))
}

fn sandboxed(facts: &Facts<'_>) -> Option<String> {
    isolation::hint(facts.stderr, facts.setting.sandbox.as_ref()?)
}

fn waited_for_a_tool(facts: &Facts<'_>) -> Option<String> {
    let record = facts.calls.unanswered().next()?;
    Some(format!(
        "The time went into waiting for {}, which had not answered after {:.1}s.",
        record.tool,
        record.duration().as_secs_f64()
    ))
}

/// What a model has to know before it sends the script again: no tool was called, no file written.
fn not_compiled(facts: &Facts<'_>) -> Option<String> {
    if facts.started || facts.stderr.is_empty() {
        return None;
    }
    let line = between(facts.stderr, "script.py\", line ", "\n").filter(|n| *n != "0");
    Some(match line {
        Some(number) => format!("Nothing of the script has run: Python stopped at line {number}."),
        None => "Nothing of the script has run: Python could not read it.".into(),
    })
}

fn failed(facts: &Facts<'_>) -> Option<String> {
    let text = facts.stderr;
    let module = &facts.setting.module;
    let python = || {
        facts
            .setting
            .python
            .as_ref()
            .map_or_else(|| "python".into(), |p| p.display().to_string())
    };
    if text.contains("EOFError") && text.contains("input(") {
        return Some("Scripts have no standard input: input() cannot be used; put the value into the script.".into());
    }
    if text.contains("ImportError: cannot import name") && text.contains(module.as_str()) {
        let tools = facts.setting.tools.join(", ");
        return Some(format!(
            "{module} offers these tools: {}.",
            if tools.is_empty() { "none" } else { &tools }
        ));
    }
    if let Some(name) = between(text, "ModuleNotFoundError: No module named '", "'") {
        return Some(format!(
            "{name} is not installed for the interpreter that runs scripts, {}; use what it has, or the standard library.",
            python()
        ));
    }
    if text.contains("the JSON object must be str, bytes or bytearray, not") {
        return Some(
            "Tool results are parsed already: use them as they are, without json.loads.".into(),
        );
    }
    if text.contains("asyncio.run() cannot be called from a running event loop") {
        return Some("A script with top-level await runs in a loop already: await the coroutine instead of asyncio.run.".into());
    }
    if text.contains("'coroutine' object") {
        return Some("A coroutine was used as if it were its result: await it.".into());
    }
    if text.contains("string indices must be integers")
        || text.contains("'str' object has no attribute 'get'")
    {
        return Some(
            "A string was used as an object: print the value to see what the tool returns.".into(),
        );
    }
    if text.contains("FileNotFoundError") && facts.setting.mode == "strict" {
        return Some("Scripts run in an empty temporary directory in strict mode: use absolute paths or the file tools.".into());
    }
    if text.contains("Tool call limit reached") {
        return Some("The limit of tool calls was reached: do more with each call, or split the work over several scripts.".into());
    }
    None
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let rest = &text[text.find(before)? + before.len()..];
    rest.split(after).next()
}
