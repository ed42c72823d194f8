//! What the integration tests share: running a script and looking at its result, and directories of their own.
#![allow(dead_code)] // Every test program takes what it needs of this.

use ptc::{Engine, Host, Outcome, Run};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;
use std::time::Duration;

/// Longer than anything takes on a machine that is busy with other things, and short enough to end a hanging test.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// An engine with the standard configuration whose tools answer nothing.
pub fn engine(config: &str) -> Engine {
    Engine::new(config, Host::new()).unwrap_or_else(|e| panic!("{config}: {e}"))
}

/// An engine whose tools are served by `tool`: from name and arguments to a result or a failure.
pub fn engine_with(
    config: &str,
    tool: impl Fn(&str, &Value) -> Result<Value, String> + Send + Sync + 'static,
) -> Engine {
    let host = Host::new().dispatch(move |call| {
        let args = serde_json::from_str(call.args()).expect("arguments are JSON");
        // A call whose run has ended takes no answer, and that is none of the tool's business.
        let _ = match tool(call.tool(), &args) {
            Ok(value) => call.reply(&value.to_string()),
            Err(message) => call.fail(&message),
        };
    });
    Engine::new(config, host).unwrap_or_else(|e| panic!("{config}: {e}"))
}

/// Runs `code` on an engine made for it and returns the result.
pub fn run(config: &str, options: &str, code: &str) -> Ran {
    execute(&engine(config), options, code)
}

/// Runs `code` on `engine` and returns the result.
pub fn execute(engine: &Engine, options: &str, code: impl AsRef<[u8]>) -> Ran {
    let outcome = engine.execute(code, options);
    Ran::new(&outcome.unwrap_or_else(|e| panic!("{options}: {e}")))
}

/// Waits for a run's end.
pub fn wait(run: &Run) -> Ran {
    let outcome = run.wait(Some(PATIENCE)).expect("waiting is allowed here");
    Ran::new(&outcome.expect("the run ends in time"))
}

/// A run's result, taken apart.
pub struct Ran {
    pub json: Value,
}

impl Ran {
    pub fn new(outcome: &Arc<Outcome>) -> Ran {
        let json: Value = serde_json::from_str(outcome.json()).expect("the result is JSON");
        assert_eq!(json["status"], outcome.status().name());
        assert_eq!(json["output"], outcome.output());
        Ran { json }
    }

    pub fn status(&self) -> &str {
        self.text("status")
    }

    pub fn output(&self) -> &str {
        self.text("output")
    }

    pub fn error(&self) -> &str {
        self.text("error")
    }

    pub fn hint(&self) -> &str {
        self.text("hint")
    }

    /// A member that is a string; empty where there is none.
    pub fn text(&self, key: &str) -> &str {
        self.json[key].as_str().unwrap_or("")
    }

    pub fn has(&self, key: &str) -> bool {
        self.json.get(key).is_some()
    }

    /// The output of a script that has to succeed.
    pub fn printed(&self) -> &str {
        assert_eq!(self.status(), "success", "{:#}", self.json);
        self.output()
    }

    /// The output of a script that has to succeed and prints JSON.
    pub fn printed_json(&self) -> Value {
        let printed = self.printed();
        serde_json::from_str(printed).unwrap_or_else(|e| panic!("{e}: {printed}"))
    }

    pub fn calls(&self) -> &[Value] {
        self.json["tool_calls"].as_array().map_or(&[], |c| c)
    }

    /// No process of the run is left, as far as this system lets anybody look.
    pub fn assert_nothing_survived(&self) {
        let can_look = cfg!(all(target_os = "linux", not(ptc_portable)));
        let survivors = &self.json["survivors"];
        assert!(
            *survivors == 0 || survivors.is_null() && !can_look,
            "{:#}",
            self.json
        );
    }

    /// One member of every call in the ledger.
    pub fn of_calls(&self, key: &str) -> Vec<&str> {
        self.calls()
            .iter()
            .map(|call| call[key].as_str().expect("a string"))
            .collect()
    }
}

/// A directory that goes with its owner.
pub struct TempDir(PathBuf);

impl TempDir {
    pub fn new() -> TempDir {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // Without links on the way, so that it can be compared with what a script says of itself.
        let parent = std::env::temp_dir()
            .canonicalize()
            .expect("a place for files");
        let path = parent.join(format!("test-of-ptc-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).expect("a new directory");
        TempDir(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn str(&self) -> &str {
        self.0.to_str().expect("a path of plain text")
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a file and the directories on the way to it.
    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        let parent = path.parent().expect("inside of the directory");
        std::fs::create_dir_all(parent).expect("its directory");
        std::fs::write(&path, text).expect("a file");
        path
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        // What cannot be removed lies in a place for such files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A path as a JSON string.
pub fn quoted(path: impl AsRef<Path>) -> String {
    Value::from(path.as_ref().to_str().expect("a path of plain text")).to_string()
}

/// A tool `echo` that takes anything.
pub const ECHO: &str = r#"{"name":"echo","description":"Gives its arguments back.","input_schema":{"type":"object",
    "properties":{"value":{}}}}"#;

/// Serves `echo`.
pub fn echo(_tool: &str, args: &Value) -> Result<Value, String> {
    Ok(args["value"].clone())
}

/// What a child of a test program is to run; the environment and directory are the child's own.
#[derive(Default)]
pub struct Job<'a> {
    pub env: &'a [(&'a str, Option<&'a str>)],
    pub cwd: Option<&'a Path>,
    /// Removes its working directory before it runs anything.
    pub loses_cwd: bool,
    pub config: &'a str,
    pub options: &'a str,
    pub code: &'a str,
}

const JOB: &str = "TEST_JOB";

impl Job<'_> {
    /// Runs it in a child of this program, which has to have an ignored test of this name that calls [`serve_job`].
    pub fn run(&self) -> Ran {
        let dir = TempDir::new();
        let job = serde_json::json!({"config": self.config, "options": self.options, "code": self.code,
            "loses_cwd": self.loses_cwd});
        dir.write("job", job.to_string());
        let program = std::env::current_exe().expect("the test program");
        let mut command = std::process::Command::new(program);
        command.args([
            "--exact",
            "child_with_an_environment_of_its_own",
            "--ignored",
        ]);
        command.env(JOB, dir.path());
        for (name, value) in self.env {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        if let Some(cwd) = self.cwd {
            command.current_dir(cwd);
        }
        let output = command.output().expect("the test program starts");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stdout)
        );
        let json = serde_json::from_str(&dir.read("result")).expect("the result is JSON");
        Ran { json }
    }
}

/// The child's side of [`Job::run`]. Without a job, when all ignored tests are asked for, it does nothing.
pub fn serve_job() {
    let Some(dir) = std::env::var_os(JOB).map(PathBuf::from) else {
        return;
    };
    let job: Value = serde_json::from_slice(&std::fs::read(dir.join("job")).unwrap()).unwrap();
    let text = |key: &str| job[key].as_str().unwrap();
    if job["loses_cwd"] == true {
        std::fs::remove_dir(std::env::current_dir().unwrap()).unwrap();
    }
    let engine = engine_with(text("config"), echo);
    let ran = execute(&engine, text("options"), text("code"));
    std::fs::write(dir.join("result"), ran.json.to_string()).unwrap();
}
