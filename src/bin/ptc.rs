//! The command `ptc`: see `ptc --help`.

fn main() -> std::process::ExitCode {
    ptc::command::main()
}
