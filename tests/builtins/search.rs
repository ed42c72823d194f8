//! `search_files`, as scripts use it; its two searchers are compared where they are made.

use super::support::{quoted, TempDir};
use super::{failure, run_in, value, value_in};
use serde_json::json;
use std::os::unix::fs::symlink;

#[test]
fn contents_files_and_counts_are_found() {
    let dir = TempDir::new();
    dir.write("a.py", "import os\nx = 1\n");
    dir.write("sub/b.py", "import sys\n");
    dir.write("sub/c.txt", "import nothing\n");
    assert_eq!(
        value(&dir, r"search_files(r'import \w+', file_glob='*.py')"),
        json!({
            "matches": [
                {"path": "a.py", "line": 1, "content": "import os"},
                {"path": "sub/b.py", "line": 1, "content": "import sys"},
            ],
            "total_count": 2, "truncated": false,
        })
    );
    assert_eq!(
        value(&dir, "search_files('*.py', target='files')")["files"],
        json!(["a.py", "sub/b.py"])
    );
    assert_eq!(
        value(
            &dir,
            "search_files('import', output_mode='count', path='sub')"
        )["counts"],
        json!({"sub/b.py": 1, "sub/c.txt": 1})
    );
    // What is found can be read by the path that was told.
    let code = "
for m in search_files('import', path='sub')['matches']:
    print(read_file(m['path'])['content'].splitlines()[m['line'] - 1] == m['content'])";
    assert_eq!(run_in(&dir, "", code).printed(), "True\nTrue\n");
}

#[test]
fn however_many_matches_there_are_they_come_the_same_way() {
    let dir = TempDir::new();
    for count in [0, 4, 5, 6, 60] {
        dir.write("a.txt", "hit\n".repeat(count));
        let got = value(&dir, "search_files('hit', context=1)");
        assert_eq!(got["matches"].as_array().unwrap().len(), count.min(50));
        assert_eq!(got["total_count"], count);
        assert_eq!(got["truncated"], count > 50);
    }
    let rest = value(&dir, "search_files('hit', offset=50)");
    assert_eq!(rest["matches"].as_array().unwrap().len(), 10);
    assert_eq!(rest["truncated"], false);
}

#[test]
fn every_control_character_comes_through() {
    let dir = TempDir::new();
    let odd: String = (1..=31)
        .chain(127..=159)
        .filter_map(char::from_u32)
        .filter(|c| !"\n\r".contains(*c))
        .collect();
    dir.write("a.txt", format!("hit {odd} \u{2028}\n"));
    let code =
        "print(search_files('hit')['matches'][0]['content'] == read_file('a.txt')['content'][:-1])";
    assert_eq!(run_in(&dir, "", code).printed(), "True\n");
}

#[test]
fn roots_bound_searches() {
    let dir = TempDir::new();
    dir.write("in/a.txt", "hit");
    dir.write("out/b.txt", "hit");
    symlink("../out", dir.join("in/leak")).unwrap();
    symlink("../out/b.txt", dir.join("in/b")).unwrap();
    let roots = format!(r#", "roots": [{}]"#, quoted(dir.join("in")));
    let search =
        |path: &str| value_in(&dir, &roots, &format!("search_files('hit', path='{path}')"));
    assert_eq!(
        search("in")["matches"],
        json!([{"path": "in/a.txt", "line": 1, "content": "hit"}])
    );
    assert_eq!(search("in/a.txt")["matches"][0]["path"], "in/a.txt");
    for path in [".", "out", "in/leak", "in/b", "in/../out", "/"] {
        let error = search(path)["error"].to_string();
        assert!(error.contains("outside of the folders"), "{path}: {error}");
    }
}

#[test]
fn a_bad_pattern_is_told_with_its_place() {
    let dir = TempDir::new();
    let error = failure(&dir, "search_files('(a')");
    assert!(error.starts_with("search_files.pattern: "), "{error}");
    let ran = run_in(&dir, "", "search_files(query='x')");
    assert!(ran.error().contains("search_files"), "{}", ran.error());
}
