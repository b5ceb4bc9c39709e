//! The text of a message: from a flag, a file, standard input, or an editor.

use std::io::{self, IsTerminal, Read};
use std::path::Path;
use std::process::Command;

use super::args::BodyArgs;
use super::exit::{Exit, Failure};

/// Reading stops here: no message is larger.
const MAX_BYTES: u64 = 8 << 20;

/// The text by flag or file, else from standard input or an editor. An empty text is most often a mistake, so it needs
/// `--allow-empty`.
pub(super) fn body(given: &BodyArgs) -> Result<String, Failure> {
    let text = text_of(given)?;
    if text.trim().is_empty() && !given.allow_empty {
        return Err(Failure::new(
            Exit::Usage,
            "the text is empty; nothing was sent (--allow-empty sends it)",
        ));
    }
    Ok(text)
}

fn text_of(given: &BodyArgs) -> Result<String, Failure> {
    if let Some(text) = &given.body {
        return Ok(text.clone());
    }
    match &given.body_file {
        Some(path) if path == Path::new("-") => read(io::stdin().lock()),
        Some(path) => {
            let file = std::fs::File::open(path)
                .map_err(|error| Failure::new(Exit::Usage, format!("{}: {error}", path.display())))?;
            read(file)
        }
        None if io::stdin().is_terminal() => edited(given.allow_empty),
        None => read(io::stdin().lock()),
    }
}

fn read(from: impl Read) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    from.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(Failure::new(Exit::Usage, format!("the text is larger than {MAX_BYTES} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| Failure::new(Exit::Usage, "the text is not UTF-8"))
}

fn edited(allow_empty: bool) -> Result<String, Failure> {
    let editor =
        ["VISUAL", "EDITOR"].iter().find_map(|name| std::env::var(name).ok().filter(|text| !text.is_empty()));
    let Some(editor) = editor else {
        let text = "there is no text: give --body, --body-file or standard input, or set EDITOR";
        return Err(Failure::new(Exit::Usage, text));
    };
    let file = tempfile::Builder::new().prefix("posthaste-").suffix(".md").tempfile()?;
    // By the convention of EDITOR it may carry arguments, so a shell takes it apart; the path is handed over untouched.
    let status =
        Command::new("sh").arg("-c").arg(format!("{editor} \"$1\"")).arg("sh").arg(file.path()).status()?;
    if !status.success() {
        return Err(Failure::new(Exit::Failed, format!("{editor} ended with {status}; nothing was sent")));
    }
    let text = read(std::fs::File::open(file.path())?)?;
    if text.trim().is_empty() && !allow_empty {
        return Err(Failure::new(Exit::Failed, "the text is empty; nothing was sent"));
    }
    Ok(text)
}
