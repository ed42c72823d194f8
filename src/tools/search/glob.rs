//! Globs over paths: `*`, `?`, `[a-z]`, `[!a]`, `{a,b}`, and `**` for any number of folders.
//!
//! Both searchers leave the choice of files to this, so that a glob means the same with either.

/// One or more patterns that were checked, all of which have to fit.
#[derive(Debug)]
pub(super) struct Glob(Vec<Pattern>);

#[derive(Debug)]
struct Pattern {
    /// One for each way to choose from the braces.
    choices: Vec<Vec<Token>>,
    /// It has no slash, so it is about the last name of a path alone.
    is_name: bool,
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Char(char),
    /// `?`: one character of a name.
    One,
    /// `*`: any characters of a name.
    Many,
    /// `**/`: any folders, or none.
    Folders,
    /// `**` at the end: all that is below.
    Rest,
    Class {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
}

/// Braces can multiply: more patterns than this are no glob that a person wrote.
const MOST_PATTERNS: usize = 1000;

impl Glob {
    pub(super) fn parse(text: &str) -> Result<Glob, String> {
        let is_name = !text.contains('/');
        let text = text.trim_start_matches("./").trim_start_matches('/');
        let choices: Result<_, String> = expand(text)?.iter().map(|p| tokens(p)).collect();
        Ok(Glob(vec![Pattern {
            choices: choices?,
            is_name,
        }]))
    }

    /// What fits both.
    pub(super) fn and(mut self, other: Glob) -> Glob {
        self.0.extend(other.0);
        self
    }

    /// Whether `path`, relative to where the search began, fits.
    pub(super) fn fits(&self, path: &str) -> bool {
        self.0.iter().all(|pattern| pattern.fits(path))
    }
}

impl Pattern {
    fn fits(&self, path: &str) -> bool {
        let about = match self.is_name {
            true => path.rsplit('/').next().unwrap_or(path),
            false => path,
        };
        let about: Vec<char> = about.chars().collect();
        self.choices.iter().any(|choice| fits(choice, &about))
    }
}

/// The patterns that a pattern with braces stands for.
fn expand(text: &str) -> Result<Vec<String>, String> {
    let mut done = Vec::new();
    let mut open = vec![text.to_string()];
    while let Some(text) = open.pop() {
        match innermost_braces(&text)? {
            None => done.push(text),
            Some((start, end)) => {
                for choice in text[start + 1..end].split(',') {
                    open.push(format!("{}{choice}{}", &text[..start], &text[end + 1..]));
                }
            }
        }
        if open.len() + done.len() > MOST_PATTERNS {
            return Err(format!(
                "its braces stand for more than {MOST_PATTERNS} patterns"
            ));
        }
    }
    Ok(done)
}

fn innermost_braces(text: &str) -> Result<Option<(usize, usize)>, String> {
    let mut start = None;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '{' => start = Some(at),
            '}' => {
                return start
                    .map(|start| Some((start, at)))
                    .ok_or_else(|| "a } without {".to_string())
            }
            _ => {}
        }
    }
    match start {
        Some(_) => Err("a { without }".into()),
        None => Ok(None),
    }
}

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let at_start = matches!(
            tokens.last(),
            None | Some(Token::Char('/') | Token::Folders)
        );
        tokens.push(match c {
            '?' => Token::One,
            '\\' => Token::Char(chars.next().ok_or("a \\ at its end")?),
            '[' => class(&mut chars)?,
            '*' => {
                let mut stars = 1;
                while chars.next_if_eq(&'*').is_some() {
                    stars += 1;
                }
                match (stars > 1 && at_start, chars.peek()) {
                    (true, None) => Token::Rest,
                    (true, Some('/')) => {
                        chars.next();
                        Token::Folders
                    }
                    _ => Token::Many,
                }
            }
            c => Token::Char(c),
        });
    }
    Ok(tokens)
}

fn class(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Result<Token, String> {
    let negated = chars.next_if(|c| matches!(c, '!' | '^')).is_some();
    let mut ranges = Vec::new();
    loop {
        let c = chars.next().ok_or("a [ without ]")?;
        if c == ']' && !ranges.is_empty() {
            return Ok(Token::Class { negated, ranges });
        }
        let first = match c {
            '\\' => chars.next().ok_or("a [ without ]")?,
            c => c,
        };
        let mut last = first;
        if chars.next_if_eq(&'-').is_some() {
            match chars.next() {
                // A hyphen before the end stands for itself.
                Some(']') => {
                    ranges.extend([(first, first), ('-', '-')]);
                    return Ok(Token::Class { negated, ranges });
                }
                Some(c) => last = c,
                None => return Err("a [ without ]".into()),
            }
        }
        ranges.push((first, last));
    }
}

/// The classic walk with one place to come back to for the last `*` and one for the last `**`.
fn fits(pattern: &[Token], text: &[char]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut back_to_star: Option<(usize, usize)> = None;
    let mut back_to_folders: Option<(usize, usize)> = None;
    loop {
        match (pattern.get(p), text.get(t)) {
            (None, None) => return true,
            (Some(Token::Rest), Some(_)) => return true,
            (Some(Token::Many), _) => {
                back_to_star = Some((p + 1, t));
                p += 1;
                continue;
            }
            (Some(Token::Folders), _) => {
                back_to_folders = Some((p + 1, t));
                back_to_star = None;
                p += 1;
                continue;
            }
            (Some(token), Some(c)) if token.fits(*c) => {
                p += 1;
                t += 1;
                continue;
            }
            _ => {}
        }
        // The last star takes one character more, but none of another folder.
        if let Some((after, from)) =
            back_to_star.filter(|(_, from)| text.get(*from).is_some_and(|c| *c != '/'))
        {
            back_to_star = Some((after, from + 1));
            (p, t) = (after, from + 1);
            continue;
        }
        let Some((after, from)) = back_to_folders else {
            return false;
        };
        let Some(slash) = text[from..].iter().position(|c| *c == '/') else {
            return false;
        };
        back_to_folders = Some((after, from + slash + 1));
        back_to_star = None;
        (p, t) = (after, from + slash + 1);
    }
}

impl Token {
    fn fits(&self, c: char) -> bool {
        match self {
            Token::Char(own) => *own == c,
            Token::One => c != '/',
            Token::Class { negated, ranges } => {
                let within = ranges
                    .iter()
                    .any(|(first, last)| (*first..=*last).contains(&c));
                c != '/' && within != *negated
            }
            Token::Many | Token::Folders | Token::Rest => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_fit_as_people_expect() {
        let cases = [
            ("*.py", "a.py", true),
            ("*.py", "x/y/a.py", true),
            ("*.py", "a.pyc", false),
            ("*", ".hidden", true),
            ("*.{py,js}", "a.js", true),
            ("*.{py,js}", "a.ts", false),
            ("{a,b{c,d}}", "bd", true),
            ("test_?.py", "x/test_1.py", true),
            ("test_?.py", "test_12.py", false),
            ("[a-c]*[!0-9]", "bx", true),
            ("[a-c]*[!0-9]", "b1", false),
            ("[]]", "]", true),
            ("[a-]", "-", true),
            ("src/*.py", "src/a.py", true),
            ("src/*.py", "src/x/a.py", false),
            ("src/*.py", "lib/src/a.py", false),
            ("src/**/*.py", "src/a.py", true),
            ("src/**/*.py", "src/x/y/a.py", true),
            ("**/test/*", "a/b/test/c", true),
            ("**/test/*", "test/c", true),
            ("**/test/*", "a/test/b/c", false),
            ("src/**", "src/x/y", true),
            ("src/**", "src", false),
            ("/a.py", "a.py", true),
            ("./a.py", "a.py", true),
            ("./a.py", "x/a.py", false),
            ("**/a*b/**/c*d", "q/axb/r/s/czd", true),
            ("**/a*b/**/c*d", "q/axb/r/s/czde", false),
            ("a**b", "axxb", true),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("é?", "éß", true),
            ("", "", true),
        ];
        for (glob, path, expected) in cases {
            assert_eq!(
                Glob::parse(glob).unwrap().fits(path),
                expected,
                "{glob} {path}"
            );
        }
    }

    #[test]
    fn what_is_no_glob_is_told() {
        for (glob, why) in [
            ("[a", "[ without ]"),
            ("{a", "{ without }"),
            ("a}", "} without {"),
            ("a\\", "\\ at its end"),
        ] {
            let error = Glob::parse(glob).unwrap_err();
            assert!(error.contains(why), "{glob}: {error}");
        }
        assert!(Glob::parse(&"{a,b}".repeat(20)).is_err());
    }

    #[test]
    fn a_hostile_glob_takes_no_time() {
        let glob = "*a".repeat(50) + "b";
        assert!(!Glob::parse(&glob).unwrap().fits(&"a".repeat(5000)));
        let glob = "**/*a/".repeat(20) + "b";
        assert!(!Glob::parse(&glob).unwrap().fits(&"aa/".repeat(500)));
    }
}
