//! A host's tools: files and commands done for real in one directory, web pages out of a list.
//!
//! They answer as scripts expect of the seven standard tools. A search takes its pattern literally, which is all that
//! the scripts here need.

use serde_json::{json, Value};
use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// The tools of one host.
pub struct Tools {
    pub root: PathBuf,
    pub web: Vec<Page>,
}

/// A page of the canned web.
pub struct Page {
    pub url: &'static str,
    pub title: &'static str,
    /// The searches that find it.
    pub found_by: &'static [&'static str],
    /// Its text, or why it cannot be read.
    pub content: Result<&'static str, &'static str>,
}

type Answer = Result<Value, String>;

impl Tools {
    pub const NAMES: &'static str = r#"["web_search","web_extract","read_file","write_file","search_files","patch","terminal"]"#;

    /// Does what `tool` is asked for.
    pub fn serve(&self, tool: &str, args: &Value) -> Answer {
        match tool {
            "read_file" => self.read_file(args),
            "write_file" => self.write_file(args),
            "search_files" => self.search_files(args),
            "patch" => self.patch(args),
            "terminal" => self.terminal(args),
            "web_search" => self.web_search(args),
            "web_extract" => self.web_extract(args),
            _ => Err(format!("there is no tool {tool}")),
        }
    }

    fn read_file(&self, args: &Value) -> Answer {
        let text = self.read(text(args, "path")?)?;
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let first = number(args, "offset", 1).max(1) - 1;
        let wanted = lines.iter().skip(first).take(number(args, "limit", 2000));
        let content: String = wanted.clone().copied().collect();
        let truncated = first + wanted.count() < lines.len();
        Ok(
            json!({"content": content, "total_lines": lines.len(), "file_size": text.len(), "truncated": truncated}),
        )
    }

    fn write_file(&self, args: &Value) -> Answer {
        let (path, content) = (self.path(text(args, "path")?), text(args, "content")?);
        let parent = path.parent().ok_or("no directory to write to")?;
        let dirs_created = !parent.exists();
        std::fs::create_dir_all(parent).map_err(|e| e.to_string())?;
        std::fs::write(&path, content).map_err(|e| e.to_string())?;
        Ok(
            json!({"status": "ok", "bytes_written": content.len(), "dirs_created": dirs_created, "resolved_path": path.to_str()}),
        )
    }

    fn search_files(&self, args: &Value) -> Answer {
        let pattern = text(args, "pattern")?;
        let base = args["path"].as_str().unwrap_or(".");
        let glob = args["file_glob"].as_str().unwrap_or("*");
        let mut files = Vec::new();
        walk(&self.path(base), &mut files).map_err(|e| format!("{base}: {e}"))?;
        files.retain(|file| {
            file.file_name()
                .is_some_and(|name| matches(glob, &name.to_string_lossy()))
        });
        files.sort();
        let mut found = Vec::new();
        for file in &files {
            let shown = file
                .strip_prefix(&self.root)
                .unwrap_or(file)
                .display()
                .to_string();
            // What is no text has no lines to search.
            let content = std::fs::read_to_string(file).unwrap_or_default();
            let lines = content
                .lines()
                .enumerate()
                .filter(|(_, line)| line.contains(pattern));
            found.extend(
                lines.map(|(i, line)| json!({"path": shown, "line": i + 1, "content": line})),
            );
        }
        let total = found.len();
        let (offset, limit) = (number(args, "offset", 0), number(args, "limit", 50));
        let matches: Vec<Value> = found.into_iter().skip(offset).take(limit).collect();
        let truncated = offset + matches.len() < total;
        Ok(json!({"matches": matches, "total_count": total, "truncated": truncated}))
    }

    fn patch(&self, args: &Value) -> Answer {
        let (path, old, new) = (
            text(args, "path")?,
            text(args, "old_string")?,
            text(args, "new_string")?,
        );
        let before = self.read(path)?;
        match before.matches(old).count() {
            0 => return Err(format!("{path}: old_string was not found")),
            n if n > 1 && args["replace_all"] != true => {
                return Err(format!(
                    "{path}: old_string was found {n} times; give more of it, or replace_all"
                ));
            }
            _ => {}
        }
        let after = before.replace(old, new);
        std::fs::write(self.path(path), &after).map_err(|e| e.to_string())?;
        let pairs = before.lines().zip(after.lines()).filter(|(a, b)| a != b);
        let diff: String = pairs.map(|(a, b)| format!("-{a}\n+{b}\n")).collect();
        Ok(
            json!({"status": "ok", "success": true, "diff": diff, "files_modified": [path], "files_created": [], "files_deleted": []}),
        )
    }

    fn terminal(&self, args: &Value) -> Answer {
        let command = text(args, "command")?;
        let mut shell = Command::new("sh");
        shell
            .arg("-c")
            .arg(format!("exec 2>&1\n{command}"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .process_group(0);
        shell.current_dir(
            args["workdir"]
                .as_str()
                .map_or(self.root.clone(), |dir| self.path(dir)),
        );
        let mut child = match shell.spawn() {
            Ok(child) => child,
            Err(e) => return Ok(json!({"output": "", "exit_code": -1, "error": e.to_string()})),
        };
        let mut stdout = child.stdout.take().ok_or("no output")?;
        let (done, output) = mpsc::channel();
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            // A command that was killed may leave half a read behind; what came is the output.
            let _ = stdout.read_to_end(&mut bytes);
            let _ = done.send(bytes);
        });
        let limit = Duration::from_secs_f64(args["timeout"].as_f64().unwrap_or(300.0));
        match output.recv_timeout(limit) {
            Ok(bytes) => {
                let status = child.wait().map_err(|e| e.to_string())?;
                Ok(
                    json!({"output": String::from_utf8_lossy(&bytes), "exit_code": status.code().unwrap_or(-1), "error": null}),
                )
            }
            Err(_) => {
                // The shell has children, which would live on and hold its output open.
                let group = format!("kill -9 -{}", child.id());
                let killed = Command::new("sh").args(["-c", &group]).status();
                killed
                    .and_then(|_| child.wait())
                    .map_err(|e| e.to_string())?;
                Ok(
                    json!({"output": "", "exit_code": 124, "error": format!("timed out after {}s", limit.as_secs_f64())}),
                )
            }
        }
    }

    fn web_search(&self, args: &Value) -> Answer {
        let query = text(args, "query")?;
        let found = self
            .web
            .iter()
            .filter(|page| page.found_by.contains(&query))
            .take(number(args, "limit", 5));
        let hits =
            found.map(|page| json!({"url": page.url, "title": page.title, "description": ""}));
        Ok(json!({"data": {"web": hits.collect::<Vec<_>>()}}))
    }

    fn web_extract(&self, args: &Value) -> Answer {
        let urls = args["urls"].as_array().ok_or("urls: expected a list")?;
        let results = urls.iter().map(|url| {
            let page = self.web.iter().find(|page| url == page.url);
            match page.map(|page| (page.title, page.content)) {
                Some((title, Ok(content))) => {
                    json!({"url": url, "title": title, "content": content, "error": null})
                }
                Some((title, Err(error))) => {
                    json!({"url": url, "title": title, "content": "", "error": error})
                }
                None => json!({"url": url, "title": "", "content": "", "error": "not found"}),
            }
        });
        Ok(json!({"results": results.collect::<Vec<_>>()}))
    }

    fn path(&self, path: &str) -> PathBuf {
        // "./a" and "src//a" are shown as "a" and "src/a".
        self.root.join(path).components().collect()
    }

    fn read(&self, path: &str) -> Result<String, String> {
        std::fs::read_to_string(self.path(path)).map_err(|e| format!("{path}: {e}"))
    }
}

fn text<'a>(args: &'a Value, key: &str) -> Result<&'a str, String> {
    args[key]
        .as_str()
        .ok_or_else(|| format!("{key}: expected a string, got {}", args[key]))
}

fn number(args: &Value, key: &str, default: usize) -> usize {
    args[key].as_u64().map_or(default, |n| n as usize)
}

fn walk(dir: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            walk(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// Whether `name` fits a glob with at most one star.
fn matches(glob: &str, name: &str) -> bool {
    match glob.split_once('*') {
        Some((before, after)) => {
            name.len() >= before.len() + after.len()
                && name.starts_with(before)
                && name.ends_with(after)
        }
        None => glob == name,
    }
}
