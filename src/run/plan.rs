//! What a run is to do: the engine's configuration with the options of this run laid over it.

use crate::config::{Config, RunOptions};
use crate::error::{Code, Error, Result};
use crate::rpc::exchange::ToolRule;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A run's script and settings, fixed before anything is done.
#[derive(Debug)]
pub(crate) struct Plan {
    pub config: Arc<Config>,
    pub options: RunOptions,
    pub code: Vec<u8>,
    /// The tools that this run may call.
    pub tools: Arc<BTreeMap<String, ToolRule>>,
    /// Handed to the host with each call.
    pub context: usize,
    /// The script is looked at and not run.
    pub only_check: bool,
}

impl Plan {
    /// Checks `code` and lays `options` over `config`. `all_tools` are the rules of all the engine's tools.
    ///
    /// # Errors
    /// [`Code::InvalidArgument`] for code that cannot be a script, [`Code::Config`] for bad options.
    pub(crate) fn new(
        config: &Arc<Config>,
        all_tools: &Arc<BTreeMap<String, ToolRule>>,
        code: &[u8],
        options: &str,
        context: usize,
    ) -> Result<Plan> {
        let options = RunOptions::parse(options, config)?;
        if options.session.is_some() {
            let message =
                "session: this version of ptc has no sessions yet; every run starts fresh";
            return Err(Error::new(Code::Unsupported, message));
        }
        let tools = match &options.tools {
            None => Arc::clone(all_tools),
            Some(names) => Arc::new(
                names
                    .iter()
                    .filter_map(|name| Some((name.clone(), *all_tools.get(name)?)))
                    .collect(),
            ),
        };
        Ok(Plan {
            config: Arc::clone(config),
            options,
            code: script(code)?,
            tools,
            context,
            only_check: false,
        })
    }
}

/// The bytes of the script file.
fn script(code: &[u8]) -> Result<Vec<u8>> {
    let mut script = script_text(code)?.to_vec();
    blank_fences(&mut script);
    if script.iter().all(u8::is_ascii_whitespace) {
        return Err(empty());
    }
    ignore_coding_declarations(&mut script);
    Ok(script)
}

/// Makes the fences empty lines where the whole script stands in a Markdown block: models like to send it so, and no
/// Python begins with a backtick. The lines keep their numbers.
fn blank_fences(script: &mut [u8]) {
    let is_fence = |line: &[u8]| line.trim_ascii().starts_with(b"```");
    let mut lines: Vec<&mut [u8]> = script.split_mut(|b| *b == b'\n').collect();
    let with_words = |line: &&mut [u8]| !line.trim_ascii().is_empty();
    let Some(first) = lines.iter().position(with_words) else {
        return;
    };
    let last = lines.iter().rposition(with_words).unwrap_or(first);
    let fences = lines.iter().filter(|line| is_fence(line)).count();
    let closed = last > first && lines[last].trim_ascii() == b"```";
    // With more of them nobody knows which block was meant.
    if !is_fence(lines[first]) || fences != 1 + usize::from(closed) {
        return;
    }
    lines[first].fill(b' ');
    if closed {
        lines[last].fill(b' ');
    }
}

/// Python believes `# -*- coding: latin-1 -*-` in the first two lines of a file, but what came here as text is UTF-8
/// whatever it says of itself. A space in the place of its colon ends the belief and moves nothing.
fn ignore_coding_declarations(script: &mut [u8]) {
    let is_end = |b: &u8| matches!(b, b'\n' | b'\r');
    for line in script.split_mut(is_end).filter(|l| !l.is_empty()).take(2) {
        match line.trim_ascii_start().first() {
            Some(b'#') => blank_colons(line),
            None => {}
            // The second line only counts behind a comment or nothing.
            Some(_) => return,
        }
    }
}

fn blank_colons(line: &mut [u8]) {
    const WORD: &[u8] = b"coding";
    for at in WORD.len()..line.len() {
        if line[..at].ends_with(WORD) && matches!(line[at], b':' | b'=') {
            line[at] = b' ';
        }
    }
}

fn empty() -> Error {
    let message = "code: empty; send a Python script that prints its result";
    Error::new(Code::InvalidArgument, message)
}

/// `code` without a byte order mark; line ends and everything else are left to Python.
fn script_text(code: &[u8]) -> Result<&[u8]> {
    let refuse = |message: String| Err(Error::new(Code::InvalidArgument, message));
    let code = code.strip_prefix(b"\xef\xbb\xbf").unwrap_or(code);
    if let Err(e) = std::str::from_utf8(code) {
        let at = e.valid_up_to();
        let line = code[..at].iter().filter(|b| **b == b'\n').count() + 1;
        return refuse(format!(
            "code: not valid UTF-8 at byte {at} (line {line}); send the script as UTF-8"
        ));
    }
    if let Some(at) = code.iter().position(|b| *b == 0) {
        return refuse(format!(
            "code: a NUL byte at byte {at}, which Python does not accept in a script; write it as \\0 in a string"
        ));
    }
    if code.iter().all(u8::is_ascii_whitespace) {
        return Err(empty());
    }
    Ok(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_coding_declaration_is_taken_out_of_force_and_nothing_else_is() {
        for (code, expected) in [
            ("# coding: x\nprint(1)", "# coding  x\nprint(1)"),
            (
                "#!/bin/py\r\n# -*- coding=x coding:y -*-\r\n",
                "#!/bin/py\r\n# -*- coding x coding y -*-\r\n",
            ),
            ("x = 1\n# coding: x\n", "x = 1\n# coding: x\n"),
            ("x = 'coding: x'", "x = 'coding: x'"),
            ("#\n#\n# coding: x\n", "#\n#\n# coding: x\n"),
            ("# coding", "# coding"),
        ] {
            assert_eq!(script(code.as_bytes()).unwrap(), expected.as_bytes());
        }
    }

    #[test]
    fn the_fences_around_a_script_become_empty_lines() {
        for (code, expected) in [
            ("```python\nprint(1)\n```", "         \nprint(1)\n   "),
            ("\n```\r\nx\r\n```\r\n\n", "\n    \nx\r\n    \n\n"),
            ("```py\nprint(1)\n", "     \nprint(1)\n"),
            ("x = '''\n```\n'''", "x = '''\n```\n'''"),
            ("```\na\n```\n```\nb\n```", "```\na\n```\n```\nb\n```"),
            ("words\n```\na\n```", "words\n```\na\n```"),
        ] {
            let got = script(code.as_bytes()).unwrap();
            assert_eq!(String::from_utf8(got).unwrap(), expected, "{code:?}");
        }
        for code in ["```", "```python\n```", "```\n\n```\n"] {
            let error = script(code.as_bytes()).unwrap_err();
            assert!(error.message().contains("empty"), "{code:?}");
        }
    }

    #[test]
    fn code_that_is_no_script_is_refused_with_the_reason() {
        let cases: [(&[u8], &str); 6] = [
            (b"", "empty"),
            (b" \r\n\t", "empty"),
            (b"\xef\xbb\xbf", "empty"),
            (b"print(1)\0", "NUL byte at byte 8"),
            (b"a = 1\nb = '\xff'", "byte 11 (line 2)"),
            (b"# \xed\xa0\x80", "not valid UTF-8"),
        ];
        for (code, reason) in cases {
            let error = script_text(code).unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument);
            assert!(error.message().contains(reason), "{error}");
        }
        assert_eq!(
            script_text(b"\xef\xbb\xbfprint(1)\r\n").unwrap(),
            b"print(1)\r\n"
        );
    }
}
