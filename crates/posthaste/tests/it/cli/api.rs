//! The reference of posthaste's own methods: `posthaste api`, and docs/api.md, which is made by it.

use std::path::Path;

use crate::harness::Posthaste;

#[test]
fn docs_api_md_is_what_the_program_prints() {
    let printed = Posthaste::new().args(["api", "markdown"]).run().ok().stdout;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/api.md");
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        printed == written,
        "docs/api.md is out of date; make it anew with `cargo run -- api markdown > docs/api.md`"
    );
}

#[test]
fn the_schema_has_params_and_result_of_every_method() {
    let schema = Posthaste::new().args(["api", "schema"]).run().ok().json();
    let methods = schema["properties"].as_object().unwrap();
    assert!(methods.len() > 30, "{}", methods.len());
    for (name, method) in methods {
        assert!(name.starts_with("x-posthaste/"), "{name}");
        assert!(method["description"].is_string(), "{name}");
        for part in ["params", "result"] {
            assert!(method["properties"][part].is_object(), "{name} {part}");
        }
    }
    let send = &schema["$defs"]["SendParams"];
    assert_eq!(send["required"], serde_json::json!(["to", "body"]));
    assert_eq!(send["additionalProperties"], false);
}
