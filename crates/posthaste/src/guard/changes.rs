//! The paths that a commit or a push touches, according to git, including deleted files and both names of renamed ones.

use std::collections::BTreeSet;
use std::path::Path;

use super::git;

/// Paths that are checked; the first ones if there are more.
const MAX_PATHS: usize = 2_000;

/// What is about to be committed.
pub(super) fn staged(directory: &Path) -> Result<BTreeSet<String>, String> {
    let out = git(directory, &["diff", "--cached", "--name-status", "-z", "-M", "--no-ext-diff"])?;
    Ok(parse(&out))
}

/// What is about to be pushed, from the lines that git gives its hook: local ref and object, remote ref and object.
pub(super) fn pushed(directory: &Path, lines: &str) -> Result<BTreeSet<String>, String> {
    let mut paths = BTreeSet::new();
    for line in lines.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, local, _, remote] = words.as_slice() else { continue };
        let none = |object: &str| object.bytes().all(|byte| byte == b'0');
        // A branch that is deleted touches no file.
        if none(local) {
            continue;
        }
        let log = ["log", "--name-status", "-z", "-M", "--format=", "--no-ext-diff", local];
        let except = format!("^{remote}");
        let known = [&log[..], &[except.as_str()]].concat();
        let fresh = [&log[..], &["--not", "--remotes"]].concat();
        // The remote's commit may not exist here; then all commits that no remote has count.
        let out = if none(remote) {
            git(directory, &fresh)
        } else {
            git(directory, &known).or_else(|_| git(directory, &fresh))
        };
        paths.append(&mut parse(&out?));
    }
    Ok(paths)
}

/// Reads `status NUL path NUL`, and `status NUL old NUL new NUL` for renames and copies.
fn parse(out: &[u8]) -> BTreeSet<String> {
    let mut words = out.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned());
    let mut paths = BTreeSet::new();
    while let Some(status) = words.next() {
        let status = status.trim();
        let names = match status.bytes().next() {
            Some(b'R' | b'C') => 2,
            Some(_) => 1,
            None => continue,
        };
        for path in words.by_ref().take(names) {
            if paths.len() < MAX_PATHS {
                paths.insert(path);
            }
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_names_of_changed_files_are_found() {
        let out = b"M\0src/a.rs\0R087\0old name.rs\0new/name.rs\0D\0gone.rs\0A\0caf\xc3\xa9.md\0";
        let paths: Vec<String> = parse(out).into_iter().collect();
        assert_eq!(paths, ["café.md", "gone.rs", "new/name.rs", "old name.rs", "src/a.rs"]);
        assert!(parse(b"").is_empty());
    }
}
