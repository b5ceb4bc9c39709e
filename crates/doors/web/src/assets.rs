//! Style, script and icon, kept in the program. Their address changes with their content, so browsers may keep them.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::visitor::hex;
use posthaste_host::keys;

pub(super) const STYLE: &str = include_str!("assets/page.css");
pub(super) const LANES: &str = include_str!("assets/lanes.css");
pub(super) const SCRIPT: &str = include_str!("assets/page.js");
const ICON: &str = include_str!("assets/icon.svg");

static VERSION: LazyLock<String> = LazyLock::new(|| {
    let all = [STYLE, LANES, SCRIPT, ICON].concat();
    hex(&keys::hash(&all)[..6])
});

/// Where an asset is, below the page's root.
pub(super) fn address(name: &str) -> String {
    format!("/ui/assets/{name}?v={}", *VERSION)
}

/// Needs no sign-in: the sign-in page is dressed, too.
pub(super) async fn serve(Path(params): Path<Vec<(String, String)>>) -> Response {
    let name = params.iter().find(|(key, _)| key == "name").map_or("", |(_, name)| name.as_str());
    let (kind, text) = match name {
        "page.css" => ("text/css; charset=utf-8", STYLE),
        "lanes.css" => ("text/css; charset=utf-8", LANES),
        "page.js" => ("text/javascript; charset=utf-8", SCRIPT),
        "icon.svg" => ("image/svg+xml", ICON),
        _ => return (StatusCode::NOT_FOUND, "there is no such file").into_response(),
    };
    let head = [(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "public, max-age=31536000, immutable")];
    (head, text).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_small() {
        assert!(SCRIPT.len() < 30_000, "the script has {} bytes", SCRIPT.len());
        assert!(STYLE.len() + LANES.len() < 40_000, "the style has {} bytes", STYLE.len() + LANES.len());
    }

    #[test]
    fn nothing_is_fetched_from_elsewhere() {
        for text in [STYLE, LANES, SCRIPT] {
            assert!(!text.contains("//cdn") && !text.contains("https:") && !text.contains("@import"));
        }
    }
}
