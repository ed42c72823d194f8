//! `ptc definition`: what a host shows its model, for the tools that the command line and the configuration give.

use super::setup::{self, option};
use super::Refusal::{self, Usage};
use super::{args, print, Command};
use crate::json::ObjectWriter;
use crate::{Code, Engine, Host};

pub(super) const COMMAND: Command = Command {
    name: "definition",
    usage: "ptc definition [OPTIONS]",
    purpose: "print the definition of execute_code to show the model",
    help: HELP,
    run: definition,
};

const HELP: &str = concat!(
    "\
ptc definition: prints the definition of the tool execute_code, which is what a host shows its model

usage: ptc definition [OPTIONS]

  --format FORMAT          anthropic (default), openai, mcp: the JSON that these interfaces expect;
                           text: the description alone
  --stats                  print its size, what a model will count, and how many of the tools it shows
  --json                   print one line of JSON: format, definition, and what --stats tells
",
    setup::options_help!()
);

fn definition(arguments: Vec<String>) -> Result<u8, Refusal> {
    let own = [
        option("--format", Some("anthropic|openai|mcp|text")),
        option("--stats", None),
    ];
    let given = args::parse(arguments, &[&setup::OPTIONS[..], &own].concat())?;
    if setup::wants_help(&given) {
        return print(HELP);
    }
    setup::refuse_operands(&given)?;
    let (_, mut config) = setup::engine_parts(&given)?;
    setup::add_session(&mut config, &given);
    let engine = Engine::new(&config.to_string(), Host::new())?;
    let format = given.one("--format").unwrap_or("anthropic");
    let definition = engine.definition(format).map_err(|e| match e.code() {
        Code::InvalidArgument => Usage(format!("--{}", e.message())),
        _ => e.into(),
    })?;
    let stats = engine.definition_stats(format)?;
    if given.has("--json") {
        let mut line = ObjectWriter::default();
        line.string("format", format);
        match format {
            "text" => line.string("definition", &definition),
            _ => line.raw("definition", &definition),
        };
        line.raw("bytes", stats.bytes)
            .raw("estimated_tokens", stats.tokens)
            .raw("tools", stats.tools)
            .raw("tools_shown", stats.tools_shown);
        return print(&(line.finish() + "\n"));
    }
    if given.has("--stats") {
        return print(&format!(
            "{} bytes, about {} tokens, {} of {} tools shown\n",
            stats.bytes, stats.tokens, stats.tools_shown, stats.tools
        ));
    }
    print(&(definition.trim_end().to_string() + "\n"))
}
