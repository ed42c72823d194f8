//! `patch`.

use super::support::{quoted, TempDir};
use super::{failure, value, value_in};
use serde_json::{json, Value};
use std::os::unix::fs::{symlink, MetadataExt, PermissionsExt};

fn apply(dir: &TempDir, patch: &str) -> Value {
    value(dir, &format!("patch(mode='patch', patch={})", json!(patch)))
}

fn refusal(dir: &TempDir, patch: &str) -> String {
    let value = apply(dir, patch);
    value["error"]
        .as_str()
        .unwrap_or_else(|| panic!("{value}"))
        .to_string()
}

#[test]
fn one_place_is_replaced_and_shown() {
    let dir = TempDir::new();
    dir.write("src/a.py", "def f():\n    return 1\n");
    assert_eq!(
        value(&dir, "patch('src/a.py', 'return 1', 'return 2')"),
        json!({
            "status": "ok", "success": true,
            "diff": "--- a/src/a.py\n+++ b/src/a.py\n@@ -1,2 +1,2 @@\n def f():\n-    return 1\n+    return 2\n",
            "files_modified": ["src/a.py"], "files_created": [], "files_deleted": [],
        })
    );
    assert_eq!(dir.read("src/a.py"), "def f():\n    return 2\n");
}

#[test]
fn several_places_need_replace_all() {
    let dir = TempDir::new();
    dir.write("a", "x\nx\nx");
    let error = failure(&dir, "patch('a', 'x', 'y')");
    assert!(
        error.contains("occurs 3 times (lines 1, 2, 3)") && error.contains("replace_all"),
        "{error}"
    );
    assert_eq!(dir.read("a"), "x\nx\nx");
    value(
        &dir,
        "patch(path='a', old_string='x', new_string='yy', replace_all=True)",
    );
    assert_eq!(dir.read("a"), "yy\nyy\nyy");
}

#[test]
fn what_does_not_occur_is_answered_with_the_nearest_place() {
    let dir = TempDir::new();
    dir.write(
        "a.py",
        "import os\n\ndef total(items):\n\treturn sum(items)\n",
    );
    let got = value(&dir, "patch('a.py', 'return sum(item)', 'x')");
    let error = got["error"].as_str().unwrap();
    assert!(error.contains("     4: \treturn sum(items)"), "{error}");
    assert_eq!(got["nearest_line"], 4);
    let got = value(&dir, "patch('a.py', 'def total(items):\\n    return sum(items)\\n', 'def total(xs):\\n    return sum(xs)\\n')");
    assert!(
        got["note"].as_str().unwrap().contains("indentation"),
        "{got}"
    );
    assert_eq!(
        dir.read("a.py"),
        "import os\n\ndef total(xs):\n\treturn sum(xs)\n"
    );
}

#[test]
fn a_file_keeps_its_manner() {
    let dir = TempDir::new();
    let path = dir.write("real", "\u{feff}a\r\nb\r\nc");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o751)).unwrap();
    symlink("real", dir.join("link")).unwrap();
    value(&dir, "patch('link', 'a\\nb\\n', 'x\\ny\\nz\\n')");
    assert_eq!(dir.read("real"), "\u{feff}x\r\ny\r\nz\r\nc");
    apply(
        &dir,
        "*** Begin Patch\n*** Update File: link\n x\n-y\n z\n+zz\n*** End Patch",
    );
    assert_eq!(dir.read("real"), "\u{feff}x\r\nz\r\nzz\r\nc");
    assert!(dir.join("link").is_symlink());
    assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o7777, 0o751);
    dir.write("bytes", b"\xff keep \xfe\n");
    value(&dir, "patch('bytes', 'keep', 'kept')");
    assert_eq!(
        std::fs::read(dir.join("bytes")).unwrap(),
        b"\xff kept \xfe\n"
    );
}

#[test]
fn what_cannot_be_edited_is_told() {
    let dir = TempDir::new();
    dir.write("binary", b"a\0b");
    dir.write("notes.txt", "x");
    dir.write("folder/x", "");
    for (call, why) in [
        ("patch('note.txt', 'x', 'y')", "did you mean \"notes.txt\"?"),
        ("patch('binary', 'a', 'y')", "binary"),
        ("patch('folder', 'a', 'y')", "a folder"),
        ("patch('/dev/null', 'a', 'y')", "not a regular file"),
        ("patch('notes.txt', '', 'y')", "old_string: empty"),
        ("patch('notes.txt', 'x', 'x')", "nothing to change"),
        ("patch('notes.txt', 'x')", "new_string: missing"),
        ("patch(old_string='x', new_string='y')", "path: missing"),
        ("patch(mode='patch')", "patch.patch: missing"),
        ("patch(mode='ed')", "patch.mode"),
    ] {
        let error = failure(&dir, call);
        assert!(error.contains(why), "{call}: {error}");
    }
}

#[test]
fn a_patch_over_several_files_is_applied() {
    let dir = TempDir::new();
    dir.write("a.py", "class A:\n    def f(self):\n        return 1\n\nclass B:\n    def f(self):\n        return 1\n");
    dir.write("old.txt", "old\n");
    let script = dir.write("tool.sh", "#!/bin/sh\necho 1\n");
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
    dir.write("log", "1\n2");
    let got = apply(
        &dir,
        "*** Begin Patch
*** Add File: new/er/n.txt
+one
+
+three
*** Delete File: old.txt
*** Update File: tool.sh
*** Move to: bin/tool
@@
-echo 1
+echo 2
*** Update File: a.py
@@ class B
@@     def f
-        return 1
+        return 2
*** Update File: log
@@
+3
*** End of File
*** End Patch",
    );
    assert_eq!(got["files_created"], json!(["new/er/n.txt", "bin/tool"]));
    assert_eq!(got["files_deleted"], json!(["old.txt", "tool.sh"]));
    assert_eq!(got["files_modified"], json!(["a.py", "log"]));
    assert_eq!(dir.read("new/er/n.txt"), "one\n\nthree\n");
    assert_eq!(dir.read("bin/tool"), "#!/bin/sh\necho 2\n");
    assert_eq!(
        std::fs::metadata(dir.join("bin/tool")).unwrap().mode() & 0o777,
        0o755
    );
    assert!(dir
        .read("a.py")
        .ends_with("return 1\n\nclass B:\n    def f(self):\n        return 2\n"));
    assert_eq!(dir.read("log"), "1\n2\n3");
    assert!(!dir.join("old.txt").exists() && !dir.join("tool.sh").exists());
    let diff = got["diff"].as_str().unwrap();
    for part in [
        "--- /dev/null\n+++ b/new/er/n.txt",
        "--- a/old.txt\n+++ /dev/null",
        "--- a/tool.sh\n+++ b/bin/tool\n",
    ] {
        assert!(diff.contains(part), "{diff}");
    }
}

#[test]
fn sections_build_on_each_other() {
    let dir = TempDir::new();
    dir.write("a", "1\n");
    let got = apply(
        &dir,
        "*** Begin Patch\n*** Update File: a\n-1\n+2\n*** Update File: ./a\n-2\n+3\n*** Move File: a -> b\n*** Add File: a\n+new\n*** Add File: c\n+c\n*** Delete File: c\n*** End Patch",
    );
    assert_eq!(
        (dir.read("a"), dir.read("b")),
        ("new\n".into(), "3\n".into()),
        "{got}"
    );
    assert!(!dir.join("c").exists());
    assert_eq!(got["files_deleted"], json!([]));
}

#[test]
fn nothing_is_changed_unless_everything_can_be() {
    let dir = TempDir::new();
    dir.write("a", "1\n");
    dir.write("b", "1\n");
    dir.write("folder/x", "");
    let head = "*** Begin Patch\n*** Update File: a\n-1\n+2\n*** Add File: new\n+x\n";
    for (tail, why) in [
        (
            "*** Update File: b\n-2\n+3\n",
            "the lines of the hunk at line 8 of the patch are not in the file",
        ),
        ("*** Update File: c\n-2\n+3\n", "c: no such file"),
        ("*** Delete File: c\n", "c: no such file"),
        ("*** Add File: b\n+x\n", "b: exists already"),
        ("*** Add File: new\n+x\n", "new: exists already"),
        ("*** Move File: a -> b\n", "b: exists already"),
        ("*** Add File: folder\n+x\n", "a folder"),
        ("*** Add File: b/c\n+x\n", "Not a directory"),
        (
            "*** Delete File: a\n*** Update File: a\n-2\n+3\n",
            "deleted or moved",
        ),
        (
            "*** Update File: b\n@@ def f\n-1\n+3\n",
            "no line begins with \"def f\"",
        ),
        (
            "*** Update File: b\n+0\n-1\n+2\n*** End of File\n-1\n+3\n",
            "after line 1",
        ),
        (
            "nonsense\n",
            "line 7: every line of an added file begins with +",
        ),
        ("*** Rename File: b\n", "line 7: expected *** Update File:"),
    ] {
        let error = refusal(&dir, &format!("{head}{tail}*** End Patch"));
        assert!(error.contains(why), "{tail}: {error}");
        assert_eq!(
            (dir.read("a"), dir.read("b")),
            ("1\n".into(), "1\n".into()),
            "{tail}"
        );
        assert!(!dir.join("new").exists(), "{tail}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 3, "{tail}");
    }
}

#[test]
fn what_was_nearly_right_is_said() {
    let dir = TempDir::new();
    dir.write("a", "one  \n  two\nx\nx\n");
    let got = apply(
        &dir,
        "*** Begin Patch\n*** Update File: a\n one\n-two\n+2\n*** End Patch",
    );
    assert!(
        got["note"]
            .as_str()
            .unwrap()
            .contains("but for indentation"),
        "{got}"
    );
    assert_eq!(dir.read("a"), "one  \n2\nx\nx\n");
    let got = apply(&dir, "*** Update File: a\n-x\n+y\n");
    assert!(
        got["note"]
            .as_str()
            .unwrap()
            .contains("fits 2 places; the first, line 3"),
        "{got}"
    );
    assert_eq!(dir.read("a"), "one  \n2\ny\nx\n");
}

#[test]
fn roots_bound_every_file_of_a_patch() {
    let dir = TempDir::new();
    dir.write("in/a", "1\n");
    dir.write("out/b", "1\n");
    symlink("../out", dir.join("in/leak")).unwrap();
    let roots = format!(r#", "roots": [{}]"#, quoted(dir.join("in")));
    for tail in [
        "*** Update File: out/b\n-1\n+2",
        "*** Update File: in/leak/b\n-1\n+2",
        "*** Add File: in/leak/c\n+x",
        "*** Delete File: in/../out/b",
        "*** Move File: in/a -> out/a",
        "*** Move File: out/b -> in/b",
    ] {
        let patch =
            format!("*** Begin Patch\n*** Update File: in/a\n-1\n+2\n{tail}\n*** End Patch");
        let got = value_in(
            &dir,
            &roots,
            &format!("patch(mode='patch', patch={})", json!(patch)),
        );
        assert!(
            got["error"].to_string().contains("outside of the folders"),
            "{got}"
        );
        assert_eq!(
            (dir.read("in/a"), dir.read("out/b")),
            ("1\n".into(), "1\n".into())
        );
    }
    let got = value_in(&dir, &roots, "patch('in/leak/b', '1', '2')");
    assert!(
        got["error"].to_string().contains("outside of the folders"),
        "{got}"
    );
}
