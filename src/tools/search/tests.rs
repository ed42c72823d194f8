//! Both searchers over the same tree: the same answers, and the right ones.

use super::*;
use crate::config::Config;
use crate::job::Stop;
use crate::json::{self, Value};
use crate::python::Environ;
use crate::rpc::call::Call;
use crate::sys::random;
use std::fs;
use std::path::PathBuf;

struct Tree(PathBuf);

impl Tree {
    fn new(files: &[(&str, &[u8])]) -> Tree {
        let name = format!("search-{}", random::hex128().unwrap());
        let tree = Tree(std::env::temp_dir().join(name));
        for (path, content) in files {
            let path = tree.0.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        tree
    }

    fn ask(&self, searcher: &Searcher, arguments: &str) -> Result<Value, String> {
        let call = Call::invented("search_files", arguments);
        let config = Config::parse("").unwrap();
        let environ = Environ::capture();
        let stop = Stop::new().unwrap();
        let context = Context {
            call: &call,
            config: &config,
            cwd: &self.0,
            env: &environ.child_env(&[], &[], &[]),
            environ: &environ,
            interpreter: &|| None,
            stop: &stop,
            engine_tag: crate::sys::scan::engine_tag(),
        };
        let value = json::parse(arguments).unwrap();
        let section = Section::new("search_files", &value).unwrap();
        let answer = search_with(searcher, &context, &section);
        answer
            .map(|text| json::parse(&text).unwrap())
            .map_err(|failure| failure.message)
    }

    /// The answer that all searchers of this machine give.
    fn answer(&self, arguments: &str) -> Result<Value, String> {
        let mut answers = searchers().into_iter().map(|searcher| {
            let answer = self.ask(&searcher, arguments);
            (searcher, answer)
        });
        let (_, first) = answers.next().unwrap();
        for (searcher, answer) in answers {
            assert_eq!(
                first.is_ok(),
                answer.is_ok(),
                "{arguments} {searcher:?}: {first:?} {answer:?}"
            );
            if first.is_ok() {
                assert_eq!(first, answer, "{arguments} {searcher:?}");
            }
        }
        first
    }

    fn lines(&self, arguments: &str) -> Vec<String> {
        let answer = self.answer(arguments).unwrap();
        let text = |m: &Value, key| {
            m.get(key)
                .unwrap()
                .to_string()
                .trim_matches('"')
                .to_string()
        };
        let matches = answer.get("matches").unwrap().as_array().unwrap().iter();
        matches
            .map(|m| {
                format!(
                    "{}:{}:{}",
                    text(m, "path"),
                    text(m, "line"),
                    text(m, "content")
                )
            })
            .collect()
    }

    fn files(&self, arguments: &str) -> Vec<String> {
        let answer = self.answer(arguments).unwrap();
        let files = answer.get("files").unwrap().as_array().unwrap().iter();
        files
            .map(|file| file.as_str().unwrap().to_string())
            .collect()
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|program| program.is_file())
}

/// Python's always, ripgrep's where it is installed.
fn searchers() -> Vec<Searcher> {
    let mut searchers = vec![Searcher::Python(on_path("python3").unwrap())];
    match on_path("rg") {
        Some(rg) => searchers.push(Searcher::Ripgrep(rg)),
        None => println!("skipped: no ripgrep to compare with"),
    }
    searchers
}

#[test]
fn common_patterns_mean_the_same() {
    let text = "foo bar\nfoobar 12\n  café naïve\nFOO\nfoo_bar-baz (x) [y] {z} $5 a.b\\c\n\ntab\there\n٣ digits\nend foo\r\nlast";
    let tree = Tree::new(&[("a.txt", text.as_bytes())]);
    for (pattern, lines) in [
        ("foo", "1 2 5 9"),
        ("^foo", "1 2 5"),
        ("foo$", "9"),
        ("^$", "6"),
        ("^", "1 2 3 4 5 6 7 8 9 10"),
        (r"\bfoo\b", "1 9"),
        (r"\d+", "2 5 8"),
        (r"\w+\s\w+", "1 2 3 5 7 8 9"),
        ("foo|last", "1 2 5 9 10"),
        ("(?i)foo", "1 2 4 5 9"),
        ("caf.", "3"),
        ("na[ïi]ve", "3"),
        (r"\(x\) \[y\] \{z\} \$5 a\.b\\c", "5"),
        (r"[\w.-]+-baz", "5"),
        (r"[*+(]+x", "5"),
        (r"\tx?h", "7"),
        (r"fo{2}", "1 2 5 9"),
        (r"(?:foo|bar) \d", "2"),
        (r"(?P<word>last)", "10"),
        (r"[^a-z]\d", "2 5"),
        ("a{2,}", ""),
        (r"\x66oo", "1 2 5 9"),
        (r"\S+$", "1 2 3 4 5 7 8 9 10"),
        ("nothing like it", ""),
    ] {
        let found = tree.lines(&format!("{{\"pattern\":{}}}", json::quote(pattern)));
        let numbers: Vec<&str> = found
            .iter()
            .map(|line| line.split(':').nth(1).unwrap())
            .collect();
        assert_eq!(numbers.join(" "), lines, "{pattern}");
    }
}

#[test]
fn what_python_understands_in_another_way_is_refused() {
    let tree = Tree::new(&[("a.txt", b"aaa")]);
    let python = &searchers()[0];
    for pattern in [
        "a++a",
        "a*+",
        "a{2}+",
        r"\Aa",
        r"a\z",
        r"\<a",
        r"a\>",
        r"\b{start}a",
        "[[:alpha:]]",
        r"\p{L}",
        "a{,3}",
        "(?>a)",
        r"\0",
        r"a\na",
        "a\na",
        "[a&&b]",
        "[a--b]",
        r"[\n]",
        "(",
        "[a",
        "a)",
        "*",
        r"\",
        "(?U)a",
    ] {
        let error = tree.ask(python, &format!("{{\"pattern\":{}}}", json::quote(pattern)));
        let error = error.expect_err(pattern);
        assert!(
            error.starts_with("search_files.pattern: "),
            "{pattern}: {error}"
        );
    }
    for pattern in [r"[\w.*+-]+", r"a\*+|a", r"\\A|a", r"[+*]+|a", r"\++|a"] {
        let found = tree
            .ask(python, &format!("{{\"pattern\":{}}}", json::quote(pattern)))
            .unwrap();
        assert_eq!(
            found.get("total_count").unwrap().to_string(),
            "1",
            "{pattern}"
        );
    }
    // A pattern that is wrong for both is an error with both.
    for pattern in ["(", "[a", "*", r"\p{None}"] {
        let error = tree
            .answer(&format!("{{\"pattern\":{}}}", json::quote(pattern)))
            .unwrap_err();
        assert!(error.starts_with("search_files.pattern: "), "{error}");
    }
}

#[test]
fn ignored_files_links_binaries_and_version_control_are_left_out_and_hidden_files_are_not() {
    let tree = Tree::new(&[
        (".gitignore", b"*.log\n/build/\n!keep.log\nsecret*\nsub/deep/x.txt\n# comment\n\\#odd\ntrail  \n**/any/**/z\nsp[a-c]ce\n"),
        ("a.txt", b"x"),
        ("a.log", b"x"),
        ("keep.log", b"x"),
        ("build/out.txt", b"x"),
        ("sub/build/out.txt", b"x"),
        ("sub/.gitignore", b"!a.log\nown\n"),
        ("sub/a.log", b"x"),
        ("sub/own/x", b"x"),
        ("sub/deep/x.txt", b"x"),
        ("sub/deep/y.txt", b"x"),
        ("secrets/x", b"x"),
        (".hidden/x", b"x"),
        (".git/config", b"x"),
        ("sub/.hg/x", b"x"),
        ("binary", b"x\n\0"),
        ("large_binary", &[&b"x\n".repeat(60_000)[..], b"\0"].concat()),
        ("utf16", b"\xff\xfex\0"),
        ("#odd", b"x"),
        ("trail", b"x"),
        ("any/b/c/z", b"x"),
        ("any/b/y", b"x"),
        ("spbce", b"x"),
        ("spdce", b"x"),
    ]);
    std::os::unix::fs::symlink("a.txt", tree.0.join("link")).unwrap();
    std::os::unix::fs::symlink("sub", tree.0.join("folder_link")).unwrap();
    let expected = [
        ".gitignore",
        ".hidden/x",
        "a.txt",
        "any/b/y",
        "keep.log",
        "spdce",
        "sub/.gitignore",
        "sub/a.log",
        "sub/build/out.txt",
        "sub/deep/y.txt",
    ];
    let found = tree.files(r#"{"pattern":"x|own|any","output_mode":"files_only"}"#);
    assert_eq!(found, expected);
    let listed = tree.files(r#"{"pattern":"*","target":"files"}"#);
    for path in expected.iter().chain(&["binary", "large_binary", "utf16"]) {
        assert!(listed.contains(&path.to_string()), "{path}: {listed:?}");
    }
    for path in [
        "a.log",
        "link",
        "folder_link",
        ".git/config",
        "sub/.hg/x",
        "secrets/x",
        "#odd",
        "trail",
        "any/b/c/z",
    ] {
        assert!(!listed.contains(&path.to_string()), "{path}");
    }
}

#[test]
fn rules_of_folders_above_count_up_to_the_repository() {
    let tree = Tree::new(&[
        (".gitignore", b"outer\n"),
        ("repo/.git/x", b""),
        ("repo/.gitignore", b"*.tmp\n"),
        ("repo/sub/outer", b"x"),
        ("repo/sub/a.tmp", b"x"),
        ("repo/sub/b", b"x"),
        ("loose/sub/outer", b"x"),
        ("loose/sub/b", b"x"),
    ]);
    let found = |path: &str| {
        tree.files(&format!(
            r#"{{"pattern":"*","target":"files","path":"{path}"}}"#
        ))
    };
    assert_eq!(found("repo/sub"), ["repo/sub/b", "repo/sub/outer"]);
    assert_eq!(found("loose/sub"), ["loose/sub/b"]);
}

#[test]
fn pages_modes_and_context_agree() {
    let text = (1..=20)
        .map(|i| format!("line {i}{}\n", if i % 3 == 0 { " hit" } else { "" }))
        .collect::<String>();
    let tree = Tree::new(&[
        ("b/1.py", text.as_bytes()),
        ("b/2.txt", text.as_bytes()),
        ("a.py", b"no\nhit\n"),
        ("c d.py", b"hit"),
    ]);
    for limit in [1, 4, 5, 6, 50] {
        let answer = tree
            .answer(&format!(r#"{{"pattern":"hit","limit":{limit}}}"#))
            .unwrap();
        let shown = answer.get("matches").unwrap().as_array().unwrap().len();
        assert_eq!(shown, limit.min(14));
        assert_eq!(answer.get("total_count").unwrap().to_string(), "14");
        assert_eq!(answer.get("truncated").unwrap().as_bool(), Some(limit < 14));
    }
    assert_eq!(
        tree.lines(r#"{"pattern":"hit","offset":6,"limit":2}"#),
        ["b/1.py:18:line 18 hit", "b/2.txt:3:line 3 hit"]
    );
    assert_eq!(
        tree.lines(r#"{"pattern":"hit","file_glob":"*.{py,x}","offset":6}"#),
        ["b/1.py:18:line 18 hit", "c d.py:1:hit"]
    );
    let counts = tree
        .answer(r#"{"pattern":"hit","output_mode":"count"}"#)
        .unwrap();
    assert_eq!(
        counts.get("counts").unwrap().to_string(),
        r#"{"a.py":1,"b/1.py":6,"b/2.txt":6,"c d.py":1}"#
    );
    let around = tree
        .answer(r#"{"pattern":"line 9","context":2,"path":"b/1.py"}"#)
        .unwrap();
    assert_eq!(
        around.get("matches").unwrap().to_string(),
        r#"[{"path":"b/1.py","line":9,"content":"line 9 hit","before":["line 7","line 8"],"after":["line 10","line 11"]}]"#
    );
    assert_eq!(
        tree.files(r#"{"pattern":"*.py","target":"files","file_glob":"b/*"}"#),
        ["b/1.py"]
    );
    assert_eq!(
        tree.lines(r#"{"pattern":"hit","path":"./b/","limit":1}"#),
        ["./b/1.py:3:line 3 hit"]
    );
}

#[test]
fn the_last_modified_can_come_first() {
    let tree = Tree::new(&[("old", b"x\nx\n"), ("sub/mid", b"x\n"), ("new", b"x\n")]);
    for (age, name) in ["new", "sub/mid", "old"].iter().enumerate() {
        let file = fs::File::options()
            .write(true)
            .open(tree.0.join(name))
            .unwrap();
        let time = SystemTime::now() - std::time::Duration::from_secs(age as u64 * 1000 + 10);
        file.set_modified(time).unwrap();
    }
    let order = r#""order":"modified""#;
    assert_eq!(
        tree.files(&format!(r#"{{"pattern":"*","target":"files",{order}}}"#)),
        ["new", "sub/mid", "old"]
    );
    assert_eq!(
        tree.files(&format!(
            r#"{{"pattern":"*","target":"files",{order},"offset":1,"limit":1}}"#
        )),
        ["sub/mid"]
    );
    assert_eq!(
        tree.lines(&format!(
            r#"{{"pattern":"x",{order},"offset":1,"limit":2}}"#
        )),
        ["sub/mid:1:x", "old:1:x"]
    );
}

#[test]
fn odd_names_and_odd_bytes_pass() {
    let control: Vec<u8> = (1..=31).filter(|b| *b != b'\n').collect();
    let tree = Tree::new(&[
        ("with space", b"hit\n"),
        ("with\nnewline", b"hit\n"),
        ("-dash", b"hit\n"),
        ("colon:1:x", b"hit\n"),
        ("bytes", &[b"hit ", &control[..], b" \xff end\n"].concat()),
        (
            "long",
            &[&[b'y'; 100_000][..], b"hit", &[b'z'; 100_000][..]].concat(),
        ),
    ]);
    let answer = tree.answer(r#"{"pattern":"hit"}"#).unwrap();
    assert_eq!(answer.get("total_count").unwrap().to_string(), "6");
    let files = tree.files(r#"{"pattern":"hit","output_mode":"files_only"}"#);
    assert_eq!(
        files,
        [
            "-dash",
            "bytes",
            "colon:1:x",
            "long",
            "with\nnewline",
            "with space"
        ]
    );
}

#[test]
fn what_cannot_be_searched_is_told() {
    let tree = Tree::new(&[("a.txt", b"x")]);
    let error = |arguments: &str| tree.answer(arguments).unwrap_err();
    assert!(error(r#"{"pattern":"x","path":"a.tx"}"#).contains("did you mean \"a.txt\""));
    assert!(error(r#"{"pattern":"x","path":"/dev/null"}"#).contains("not a regular file"));
    assert!(error(r#"{"pattern":"x","file_glob":"[a"}"#).contains("search_files.file_glob"));
    assert!(error(r#"{"pattern":"{a","target":"files"}"#).contains("search_files.pattern"));
    assert!(error(r#"{"pattern":"x","limit":0}"#).contains("search_files.limit"));
    assert!(error(r#"{"pattern":"x","order":"size"}"#).contains("search_files.order"));
    assert!(error(r#"{"target":"files"}"#).contains("search_files.pattern: missing"));
}
