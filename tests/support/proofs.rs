//! Tables of what is proven by which test. They cannot rot: what they name must be there.

use std::path::Path;

/// What a row of such a table stands on.
#[derive(Clone, Copy)]
pub enum Proof {
    /// A file and a test in it.
    Test(&'static str, &'static str),
    /// Why there is no test.
    Because(&'static str),
}

/// Every test that row `name` stands on is in the file that it names.
pub fn check(name: &str, proofs: &[Proof]) {
    assert!(!proofs.is_empty(), "{name}");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for proof in proofs {
        match proof {
            Proof::Because(why) => assert!(why.len() > 10, "{name}: {why}"),
            Proof::Test(file, test) => {
                let text = std::fs::read_to_string(root.join(file)).unwrap_or_default();
                let names = [format!("fn {test}("), format!("void {test}(")];
                let is_there = names.iter().any(|name| text.contains(name));
                assert!(is_there, "{name}: {file} has no test {test}");
            }
        }
    }
}
