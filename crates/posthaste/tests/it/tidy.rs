//! House rules that a compiler does not know.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn sources(directory: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push((path.clone(), fs::read_to_string(&path).unwrap()));
        }
    }
    found
}

fn all_sources() -> Vec<(PathBuf, String)> {
    sources(&root().join("crates"))
}

#[test]
fn every_module_says_what_it_is_for() {
    for (path, text) in all_sources() {
        assert!(text.starts_with("//! "), "{} does not start with what lives there", path.display());
    }
}

#[test]
fn no_file_has_outgrown_its_subject() {
    for (path, text) in all_sources() {
        let lines = text.lines().count();
        assert!(lines <= 900, "{} has {lines} lines", path.display());
    }
}

#[test]
fn the_engine_knows_no_protocol_by_name() {
    let names = ["mcp", "airc", "swarm", "jsonrpc", "json-rpc", "websocket", "http", "axum"];
    for (path, text) in sources(&root().join("crates/engine/src")) {
        for (number, line) in text.lines().enumerate() {
            let words = line.to_lowercase();
            let mut words = words.split(|c: char| !c.is_alphanumeric() && c != '-');
            let named = words.find(|word| names.contains(word));
            assert_eq!(named, None, "{}:{}", path.display(), number + 1);
        }
    }
}

/// Pronouns and metaphors that hide the subject of a sentence. Plain words are caller, client, subscriber, recipient,
/// message, database.
const UNCLEAR_WORDS: [&str; 8] =
    ["whoever", "somebody", "nobody", "everybody", "anybody", "letter", "letters", "books"];
const UNCLEAR_PAIRS: [(&str, &str); 3] = [("those", "who"), ("so", "many"), ("so", "long")];

/// The words of a source text in lower case, with their line numbers and whether only white space, underscores or comment
/// markers separate each from the one before. Identifiers are split at underscores and before capitals. Serialised names
/// (`rename = "…"`, `alias = "…"`) belong to the wire format and are left out.
fn words_of(text: &str) -> Vec<(usize, String, bool)> {
    let mut words: Vec<(usize, String, bool)> = Vec::new();
    let mut adjacent = false;
    for (number, line) in text.lines().enumerate() {
        let mut line = line.to_owned();
        for name in ["rename = \"", "alias = \""] {
            while let Some(start) = line.find(name) {
                let value = start + name.len();
                let end = line[value..].find('"').map_or(line.len(), |end| value + end);
                line.replace_range(start..end, "");
            }
        }
        let mut word = String::new();
        let mut after_lower_case = false;
        for c in line.chars().chain(['\n']) {
            let is_word = c.is_alphanumeric();
            let splits = is_word && c.is_uppercase() && after_lower_case;
            if (!is_word || splits) && !word.is_empty() {
                words.push((number + 1, std::mem::take(&mut word), adjacent));
                adjacent = true;
            }
            if is_word {
                word.extend(c.to_lowercase());
            } else if !matches!(c, '_' | '/' | '!') && !c.is_whitespace() {
                adjacent = false;
            }
            after_lower_case = c.is_lowercase();
        }
    }
    words
}

fn unclear_words(text: &str) -> Vec<(usize, String)> {
    let words = words_of(text);
    let single = words.iter().filter(|(_, word, _)| UNCLEAR_WORDS.contains(&word.as_str()));
    let single = single.map(|(line, word, _)| (*line, word.clone()));
    let pairs = words
        .windows(2)
        .filter(|pair| pair[1].2 && UNCLEAR_PAIRS.contains(&(pair[0].1.as_str(), pair[1].1.as_str())));
    let pairs = pairs.map(|pair| (pair[0].0, format!("{} {}", pair[0].1, pair[1].1)));
    single.chain(pairs).collect()
}

/// The texts of the project: sources, scripts of the tests, and pages.
fn texts(directory: &Path) -> Vec<(PathBuf, String)> {
    let endings = ["rs", "md", "mjs", "js", "css", "py", "sh", "toml"];
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            // Published documents and samples of other programs.
            if !path.ends_with("data") && !path.ends_with("node_modules") {
                found.extend(texts(&path));
            }
        } else if path.extension().is_some_and(|ending| endings.iter().any(|known| ending == *known)) {
            found.push((path.clone(), fs::read_to_string(&path).unwrap()));
        }
    }
    found
}

#[test]
fn sources_and_docs_are_written_in_plain_words() {
    let mut found = Vec::new();
    let pages = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md"];
    let pages = pages.map(|page| (root().join(page), fs::read_to_string(root().join(page)).unwrap()));
    let folders = ["crates", "docs", "examples", "bench", "fuzz", "tests"];
    let files = folders.iter().flat_map(|folder| texts(&root().join(folder)));
    // This file has the words themselves, and api.md names of the wire that are older than the rule.
    let is_exempt = |path: &Path| path.ends_with("it/tidy.rs") || path.ends_with("docs/api.md");
    for (path, text) in files.chain(pages).filter(|(path, _)| !is_exempt(path)) {
        let unclear = unclear_words(&text).into_iter();
        found.extend(unclear.map(|(line, words)| format!("{}:{line}: {words}", path.display())));
    }
    assert!(found.is_empty(), "{} unclear words:\n{}", found.len(), found.join("\n"));
}

#[test]
fn unclear_words_are_found_in_comments_identifiers_and_across_lines() {
    let found = |text: &str| unclear_words(text).into_iter().map(|(_, words)| words).collect::<Vec<_>>();
    assert_eq!(found("// Whoever asks"), ["whoever"]);
    assert_eq!(found("fn first_letter() {}"), ["letter"]);
    assert_eq!(found("struct DeadLetters;"), ["letters"]);
    assert_eq!(found("/// for those\n/// who wait"), ["those who"]);
    assert_eq!(found("fn so_many_rows() {}"), ["so many"]);
    assert_eq!(found("// It does so. Many rows; so, long ones. Newsletter, bookshelf"), Vec::<String>::new());
    assert_eq!(found("#[serde(default, rename = \"letters\")]"), Vec::<String>::new());
}

/// What each crate of the workspace needs of the others, tests aside.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--format-version", "1", "--no-deps", "--offline"]).current_dir(root());
    let output = cargo.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let needs = |package: &Value| {
        let needs = package["dependencies"].as_array().unwrap().iter().filter(|need| need["kind"].is_null());
        needs.map(|need| need["name"].as_str().unwrap().to_owned()).collect()
    };
    packages.iter().map(|package| (package["name"].as_str().unwrap().to_owned(), needs(package))).collect()
}

#[test]
fn no_door_depends_on_another() {
    let graph = dependencies();
    let doors: Vec<String> = fs::read_dir(root().join("crates/doors"))
        .unwrap()
        .map(|entry| format!("posthaste-{}", entry.unwrap().file_name().to_str().unwrap()))
        .collect();
    assert!(doors.len() >= 7, "{doors:?}");
    for door in &doors {
        let others: Vec<_> = graph[door].iter().filter(|need| doors.contains(need)).collect();
        assert!(others.is_empty(), "{door} depends on {others:?}");
        assert!(!graph[door].contains("posthaste"), "{door} depends on the program");
    }
    for below in ["posthaste-wire", "posthaste-engine", "posthaste-host"] {
        let doors: Vec<_> = graph[below].iter().filter(|need| doors.contains(need)).collect();
        assert!(doors.is_empty(), "{below} depends on {doors:?}");
    }
}

#[test]
fn wire_and_engine_do_not_know_each_other() {
    let graph = dependencies();
    let (wire, engine) = (&graph["posthaste-wire"], &graph["posthaste-engine"]);
    assert!(!engine.contains("posthaste-wire") && !wire.contains("posthaste-engine"));
    assert!(!wire.contains("tokio"), "wire does no IO");
}

/// JSON that goes out is written by the types of `wire`, so that a changed shape does not compile at its users.
#[test]
fn doors_write_json_through_wire_types() {
    let mut found = Vec::new();
    let files =
        sources(&root().join("crates/doors")).into_iter().chain(sources(&root().join("crates/host/src")));
    for (path, text) in files.filter(|(path, _)| !path.ends_with("tests.rs")) {
        let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        for (number, line) in text.lines().enumerate() {
            let code = line.split("// ").next().unwrap_or_default();
            let pushes =
                ["push_str(", "write!(", "format!(", "concat!("].iter().any(|call| code.contains(call));
            if code.contains("json!(") || (pushes && (code.contains("\\\":") || code.contains("\":"))) {
                found.push(format!("{}:{}: {}", path.display(), number + 1, line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "{} places that write JSON by hand:\n{}", found.len(), found.join("\n"));
}

#[test]
fn there_is_one_tls_stack() {
    let lock = fs::read_to_string(root().join("Cargo.lock")).unwrap();
    for banned in ["aws-lc-rs", "aws-lc-sys", "openssl-sys", "native-tls", "rsa"] {
        assert!(!lock.contains(&format!("name = \"{banned}\"\n")), "{banned} is in Cargo.lock");
    }
}

#[test]
fn the_code_map_names_every_folder() {
    let map = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    for krate in dependencies().keys() {
        let name = krate.trim_start_matches("posthaste-");
        let known = ["crates", "crates/doors"].map(|folder| root().join(folder).join(name).join("src"));
        let source = known.iter().find(|path| path.is_dir()).unwrap_or_else(|| panic!("where is {krate}?"));
        for entry in fs::read_dir(source).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            let is_named = map.contains(&format!("{name}/"));
            assert!(!path.is_dir() || is_named, "{} is not on the map", path.display());
        }
    }
}

#[test]
fn nothing_is_left_unfinished() {
    let marks = [concat!("to", "do!("), concat!("unimpl", "emented!("), concat!("#[ign", "ore")];
    for (path, text) in all_sources() {
        for mark in marks {
            assert!(!text.contains(mark), "{} contains {mark}", path.display());
        }
    }
}

/// Doors and projects deal with names that callers choose, so they open files through `safe_open` (or by descriptor,
/// which is what `rustix` is for) and ask the file system about no path that a caller named.
#[test]
fn doors_open_files_through_one_helper() {
    let opening =
        ["use std::fs", "tokio::fs", "File::open", "File::create", "OpenOptions", "fs::read", "fs::write"];
    let making = ["read_dir(", "NamedTempFile", "create_dir", "remove_file(", "set_permissions"];
    let asking =
        [".canonicalize(", ".exists()", "path.is_dir()", ".is_symlink()", "symlink_metadata", "read_link("];
    let allowed = [
        (
            "host/src/projects/git.rs",
            "read for the user that runs the process: the command line, and the server at start",
        ),
        ("host/src/projects/trees.rs", "resolves the directories that the operator named, at start"),
        ("doors/files/src/bridge/mod.rs", "resolves the mail directory that the operator named, at start"),
        ("doors/files/src/bridge/reconcile.rs", "names the mail directory to the watcher"),
        (
            "doors/files/src/bridge/watch.rs",
            "watches directories of the mail directory, which it does not open",
        ),
        ("doors/files/src/directory.rs", "makes the mail directory that the operator named"),
    ];
    let source = root().join("crates");
    let mut used = BTreeSet::new();
    // The runtime reads the operator's swarm file.
    let runtime = source.join("doors/swarm/src/runtime");
    let doors = sources(&source.join("doors")).into_iter().filter(|(path, _)| !path.starts_with(&runtime));
    for (path, text) in doors.chain(sources(&source.join("host/src/projects"))) {
        let name = path.strip_prefix(&source).unwrap().to_str().unwrap().to_owned();
        let text = text.split("#[cfg(test)]").next().unwrap_or_default();
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            let opened = opening.iter().chain(&making).find(|word| code.contains(**word));
            assert_eq!(opened, None, "{name}:{}: use posthaste_host::safe_open", number + 1);
            if asking.iter().any(|word| code.contains(word)) {
                assert!(
                    allowed.iter().any(|(file, _)| *file == name),
                    "{name}:{}: a path is a name",
                    number + 1
                );
                used.insert(name.clone());
            }
        }
    }
    for (file, _) in allowed {
        assert!(used.contains(file), "{file} need not be allowed");
    }
}

// Outside, 8: a test failed where another program had left a file beside the test's directory.
#[test]
fn tests_have_a_directory_of_their_own_with_nothing_beside_it() {
    let dir = crate::harness::TestDir::new();
    let beside = fs::read_dir(dir.path().parent().unwrap()).unwrap();
    assert_eq!(beside.map(|entry| entry.unwrap().path()).collect::<Vec<_>>(), [dir.path()]);
    let made_elsewhere = concat!("tempfile", "::");
    for (path, text) in sources(&root().join("crates/posthaste/tests")) {
        let is_harness = path.ends_with("it/harness.rs");
        assert!(is_harness || !text.contains(made_elsewhere), "{}: use TestDir", path.display());
    }
}
