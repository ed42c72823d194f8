//! `read_file`, `write_file` and the folders that bound them.

use super::support::{quoted, TempDir};
use super::{failure, run_in, value, value_in};
use serde_json::json;
use std::os::unix::fs::{symlink, MetadataExt, PermissionsExt};

#[test]
fn a_file_is_read_plain_however_often() {
    let dir = TempDir::new();
    dir.write("a.txt", "one\ntwo\n\nfour\n");
    for _ in 0..3 {
        assert_eq!(
            value(&dir, "[read_file('a.txt') for _ in range(3)][-1]"),
            json!({"content": "one\ntwo\n\nfour\n", "total_lines": 4, "file_size": 14, "truncated": false})
        );
    }
}

#[test]
fn lines_are_counted_from_one_and_the_rest_is_pointed_at() {
    let dir = TempDir::new();
    let lines: Vec<String> = (1..=10).map(|i| format!("line {i}")).collect();
    for (ending, text) in [("", lines.join("\n")), ("\n", lines.join("\n") + "\n")] {
        dir.write("a.txt", &text);
        for (offset, limit) in [(1, 1), (1, 9), (1, 10), (1, 11), (9, 1), (10, 1), (10, 5)] {
            let got = value(&dir, &format!("read_file('a.txt', {offset}, {limit})"));
            let last = 10.min(offset + limit - 1);
            let mut expected = lines[offset - 1..last].join("\n");
            expected += if last < 10 { "\n" } else { ending };
            assert_eq!(got["content"], expected, "{offset} {limit}");
            assert_eq!(got["total_lines"], 10);
            assert_eq!(got["truncated"], last < 10);
            let hint = got["hint"].as_str().unwrap_or("");
            assert_eq!(
                hint.contains(&format!("offset={}", last + 1)),
                last < 10,
                "{hint}"
            );
        }
    }
    let beyond = value(&dir, "read_file('a.txt', 11)");
    assert_eq!(
        (&beyond["content"], &beyond["hint"]),
        (&json!(""), &json!("The file has only 10 lines."))
    );
}

#[test]
fn an_empty_file_has_no_lines() {
    let dir = TempDir::new();
    dir.write("a.txt", "");
    let got = value(&dir, "read_file('a.txt')");
    assert_eq!(
        (&got["content"], &got["total_lines"]),
        (&json!(""), &json!(0))
    );
}

#[test]
fn long_lines_are_cut_at_2000_characters_and_say_so() {
    let dir = TempDir::new();
    for (chars, unit) in [
        (1999, "x"),
        (2000, "x"),
        (2001, "x"),
        (2000, "é"),
        (2001, "🎉"),
        (100_000, "🎉"),
    ] {
        dir.write("a.txt", format!("a\n{}\nz\n", unit.repeat(chars)));
        let got = value(&dir, "read_file('a.txt')");
        let content = got["content"].as_str().unwrap();
        let lines: Vec<&str> = content.lines().collect();
        assert_eq!((lines[0], lines[2], lines.len()), ("a", "z", 3));
        assert_eq!(got["truncated"], chars > 2000);
        if chars <= 2000 {
            assert_eq!(lines[1], unit.repeat(chars));
        } else {
            let missing = (chars - 2000) * unit.len();
            let expected = format!("{}… [{missing} bytes of this line cut]", unit.repeat(2000));
            assert_eq!(lines[1], expected);
            assert!(got["hint"].as_str().unwrap().contains("longer than 2000"));
        }
    }
}

#[test]
fn a_large_file_is_read_to_its_end_and_its_middle_shown() {
    let dir = TempDir::new();
    let line = "0123456789abcdef".repeat(8) + "\n";
    dir.write("a.txt", line.repeat(300_000));
    let got = value(&dir, "read_file('a.txt', 200_000, 2)");
    assert_eq!(got["content"], line.repeat(2));
    assert_eq!(got["total_lines"], 300_000);
    assert_eq!(got["file_size"], 300_000 * line.len());
    // What would not fit into a message is left for the next call.
    let whole = value(
        &dir,
        "[len(r['content']) for r in [read_file('a.txt', 1, 10**9)]][0]",
    );
    let whole = whole.as_u64().unwrap();
    assert!((1 << 22..1 << 23).contains(&whole), "{whole}");
}

#[test]
fn what_is_no_text_is_told_apart() {
    let dir = TempDir::new();
    dir.write("binary", b"\x7fELF\0\x01");
    dir.write("utf16", b"\xff\xfea\0b\0");
    dir.write("latin1", b"caf\xe9\nna\xefve\n");
    dir.write("folder/x", "");
    let status = std::process::Command::new("mkfifo")
        .arg(dir.join("fifo"))
        .status();
    assert!(status.unwrap().success());
    assert!(failure(&dir, "read_file('binary')").contains("binary (byte 4 is 0)"));
    assert!(failure(&dir, "read_file('utf16')").contains("UTF-16"));
    assert!(failure(&dir, "read_file('folder')").contains("a folder"));
    assert!(failure(&dir, "read_file('fifo')").contains("not a regular file"));
    assert!(failure(&dir, "read_file('/dev/zero')").contains("not a regular file"));
    assert!(failure(&dir, "read_file('folder/x/y')").contains("Not a directory"));
    let latin = value(&dir, "read_file('latin1')");
    assert_eq!(latin["content"], "caf\u{fffd}\nna\u{fffd}ve\n");
    assert!(latin["hint"].as_str().unwrap().contains("not UTF-8"));
}

#[test]
fn a_missing_file_names_those_that_are_near() {
    let dir = TempDir::new();
    for name in ["config.yaml", "config.yml", "readme.md"] {
        dir.write(&format!("sub/{name}"), "");
    }
    let got = value(&dir, "read_file('sub/config.yam')");
    let error = got["error"].as_str().unwrap();
    assert!(
        error.contains("no such file; did you mean \"sub/config.yaml\"?"),
        "{error}"
    );
    assert_eq!(
        got["similar_files"],
        json!(["sub/config.yaml", "sub/config.yml"])
    );
    let got = value(&dir, "read_file('none/of/this')");
    assert_eq!(got["similar_files"], json!([]));
}

#[test]
fn what_was_written_is_what_is_read() {
    let dir = TempDir::new();
    for text in [
        "",
        "x",
        "a\r\nb\r\n",
        "\u{feff}bom\n",
        "no end",
        "\u{1}\u{1b}[0m\u{7f}\u{85}\u{2028}\n",
        "🎉\n",
    ] {
        let name = "deep/er/file.txt";
        let _ = std::fs::remove_dir_all(dir.join("deep"));
        let written = value(&dir, &format!("write_file('{name}', {})", json!(text)));
        assert_eq!(
            written,
            json!({
                "status": "ok", "bytes_written": text.len(), "dirs_created": true,
                "resolved_path": dir.path().canonicalize().unwrap().join(name),
            })
        );
        assert_eq!(dir.read(name), text);
        assert_eq!(
            value(&dir, &format!("read_file('{name}')"))["content"],
            text
        );
        let again = value(&dir, &format!("write_file('{name}', {})", json!(text)));
        assert_eq!(again["dirs_created"], false);
        assert_eq!(dir.read(name), text);
    }
}

#[test]
fn an_existing_file_keeps_its_manner() {
    let dir = TempDir::new();
    for (before, content, after) in [
        ("a\r\nb\r\n", "x\ny\n", "x\r\ny\r\n"),
        ("a\r\nb\n", "x\ny\n", "x\ny\n"),
        ("a\r\nb\r\n", "x\r\ny\n", "x\r\ny\n"),
        ("\u{feff}a\n", "x\n", "\u{feff}x\n"),
        ("\u{feff}a\r\n", "\u{feff}x\n", "\u{feff}x\r\n"),
        ("a\n", "x\r\n", "x\r\n"),
    ] {
        dir.write("a.txt", before);
        let written = value(&dir, &format!("write_file('a.txt', {})", json!(content)));
        assert_eq!(dir.read("a.txt"), after);
        assert_eq!(written["bytes_written"], after.len());
        assert_eq!(written["note"].is_string(), content != after, "{written}");
    }
}

#[test]
fn an_existing_file_keeps_its_mode_and_a_link_its_target() {
    let dir = TempDir::new();
    let path = dir.write("real/script.sh", "#!/bin/sh\n");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o750)).unwrap();
    symlink("real/script.sh", dir.join("link")).unwrap();
    symlink("real/new", dir.join("dangling")).unwrap();
    value(
        &dir,
        "[write_file('link', 'a'), write_file('dangling', 'b')]",
    );
    assert!(dir.join("link").is_symlink() && dir.join("dangling").is_symlink());
    assert_eq!(
        (dir.read("real/script.sh"), dir.read("real/new")),
        ("a".into(), "b".into())
    );
    assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o7777, 0o750);
    let names: Vec<_> = std::fs::read_dir(dir.join("real")).unwrap().collect();
    assert_eq!(names.len(), 2, "{names:?}");
}

#[test]
fn nothing_is_written_where_nothing_can_be() {
    let dir = TempDir::new();
    dir.write("file", "kept");
    dir.write("folder/x", "");
    assert!(failure(&dir, "write_file('folder', 'x')").contains("a folder"));
    assert!(failure(&dir, "write_file('file/x', 'x')").contains("Not a directory"));
    assert!(failure(&dir, "write_file('/dev/null', 'x')").contains("not a regular file"));
    assert!(failure(&dir, "write_file('a\\0b', 'x')").contains("no path"));
    assert!(failure(&dir, "write_file('/proc/none/x', 'x')").contains("/proc/none/x"));
    assert_eq!(dir.read("file"), "kept");
}

#[test]
fn a_file_is_never_seen_half_written() {
    let dir = TempDir::new();
    let code = "
import threading
done = threading.Event()
sizes = set()
def look():
    while not done.is_set():
        sizes.add(len(open('f').read()))
write_file('f', 'a' * 1_000_000)
t = threading.Thread(target=look)
t.start()
for c in 'bcdefgh':
    write_file('f', c * 1_000_000)
done.set()
t.join()
print(sizes)";
    assert_eq!(run_in(&dir, "", code).printed(), "{1000000}\n");
}

#[test]
fn roots_bound_the_file_tools() {
    let dir = TempDir::new();
    dir.write("in/a.txt", "inside");
    dir.write("also/b.txt", "also inside");
    dir.write("out/c.txt", "outside");
    symlink("../also/b.txt", dir.join("in/to_root")).unwrap();
    symlink(dir.join("in/a.txt"), dir.join("out/back")).unwrap();
    symlink("../out", dir.join("in/leak")).unwrap();
    symlink("../out/new", dir.join("in/dangling")).unwrap();
    let roots = format!(
        r#", "roots": [{}, {}, "/does/not/exist"]"#,
        quoted(dir.join("in")),
        quoted(dir.join("also"))
    );
    let read = |path: &str| value_in(&dir, &roots, &format!("read_file({})", json!(path)));
    for (path, content) in [
        ("in/a.txt", "inside"),
        ("in/../in/a.txt", "inside"),
        ("in/to_root", "also inside"),
        ("out/back", "inside"),
    ] {
        assert_eq!(read(path)["content"], content, "{path}");
    }
    for path in [
        "out/c.txt",
        "in/../out/c.txt",
        "in/leak/c.txt",
        "in/leak/none",
        "in/dangling",
        "/etc/passwd",
        "/none/of/this",
        "~/x",
        ".",
    ] {
        let error = read(path)["error"].to_string();
        assert!(error.contains("outside of the folders"), "{path}: {error}");
        let code = format!("write_file({}, 'x')", json!(path));
        let error = value_in(&dir, &roots, &code)["error"].to_string();
        assert!(error.contains("outside of the folders"), "{path}: {error}");
    }
    assert!(!dir.join("out/new").exists());
    let made = value_in(&dir, &roots, "write_file('in/new/er', 'x')");
    assert_eq!(made["status"], "ok");
}
