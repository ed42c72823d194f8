//! "Did you mean": the known name that is nearest to one that somebody got wrong.

/// The one of `known` that `wrong` was most likely meant to be: equal but for case, hyphens and underscores, or a few
/// keystrokes away. `None` when nothing is near enough to be worth saying.
pub(crate) fn nearest<'a>(
    wrong: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let wanted = fold(wrong);
    // A third of the name may be wrong; in the shortest names one letter.
    let limit = (wanted.len() / 3).max(1);
    known
        .into_iter()
        .filter_map(|name| {
            let folded = fold(name);
            let begins =
                wanted.len() >= 3 && (folded.starts_with(&wanted) || wanted.starts_with(&folded));
            match distance(&wanted, &folded) {
                d if d <= limit => Some((d, name)),
                // A name cut short or continued counts as near, but behind every typing error.
                d if begins => Some((limit + d, name)),
                _ => None,
            }
        })
        .min_by_key(|(d, _)| *d)
        .map(|(_, name)| name)
}

/// `; did you mean "x"?`, or nothing.
pub(crate) fn did_you_mean<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(wrong, known).map_or(String::new(), |name| format!("; did you mean {name:?}?"))
}

/// What counts in a name: its letters and digits, in lower case, bounded so that a hostile name costs nothing.
fn fold(name: &str) -> Vec<char> {
    name.chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .take(100)
        .collect()
}

/// The number of characters to insert, remove, replace or swap with their neighbour.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let same = a[i - 1] == b[j - 1];
            let mut best = (last[j] + 1)
                .min(row[j - 1] + 1)
                .min(last[j - 1] + usize::from(!same));
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_find_their_name() {
        let known = [
            "timeout",
            "max_tool_calls",
            "max_stdout_bytes",
            "max_stderr_bytes",
            "mode",
        ];
        for (wrong, expected) in [
            ("time_out", Some("timeout")),
            ("tiemout", Some("timeout")),
            ("maxToolCalls", Some("max_tool_calls")),
            ("max-stderr-byte", Some("max_stderr_bytes")),
            ("max_tool", Some("max_tool_calls")),
            ("mod", Some("mode")),
            ("banana", None),
            ("", None),
            ("---", None),
        ] {
            assert_eq!(nearest(wrong, known), expected, "{wrong}");
        }
    }

    #[test]
    fn a_typing_error_is_nearer_than_a_cut_name() {
        assert_eq!(nearest("patch", ["patches_all", "pach"]), Some("pach"));
    }

    #[test]
    fn the_sentence_is_empty_without_a_neighbour() {
        assert_eq!(did_you_mean("x1y2", ["timeout"]), "");
        assert_eq!(
            did_you_mean("timout", ["timeout"]),
            "; did you mean \"timeout\"?"
        );
    }
}
