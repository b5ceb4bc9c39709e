//! The one table of tools: name, arguments and the function that answers. A tool's purpose and schema come from the struct of
//! its arguments.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::LazyLock;

use posthaste_engine::one_request;
use posthaste_wire::mcp::tools::{CallParams, Tool as ListedTool};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::answer::Answer;
use super::arguments;
use super::call::Call;
use super::errors::DoorError;
use super::hints::Effect;
use super::schema::Published;
use super::tools;
use crate::ToolSet;

/// A tool's answer to come.
type Answering<'c> = Pin<Box<dyn Future<Output = Result<Answer, DoorError>> + Send + 'c>>;
/// The function behind a tool.
type Handler = for<'c> fn(&'c Call, Map<String, Value>) -> Answering<'c>;

/// A line of the table as its family declares it.
#[derive(Clone, Copy)]
pub(super) struct Line {
    pub(super) name: &'static str,
    /// Whether it is shown when few tools are asked for.
    pub(super) core: bool,
    pub(super) effect: Effect,
    pub(super) schema: fn() -> Published,
    /// Whether checked arguments fit its struct. They always should.
    pub(super) reads: fn(Map<String, Value>) -> Result<(), DoorError>,
    pub(super) answer: Handler,
}

/// A tool as it is called and shown.
pub(super) struct Tool {
    pub(super) line: Line,
    /// As it is listed, with its arguments as JSON Schema.
    pub(super) shown: ListedTool,
}

/// Tools that wait and can report progress.
const WAITING: [&str; 2] = ["wait_for_mail", "await_message"];

/// Whether these are params of a call that waits.
pub(super) fn is_waiting(params: Option<&RawValue>) -> bool {
    let text = params.map_or("", RawValue::get);
    WAITING.iter().any(|name| text.contains(name))
        && serde_json::from_str::<CallParams>(text)
            .is_ok_and(|params| WAITING.contains(&params.name.as_str()))
}

/// Makes a line of the table: the function, whose name is the tool's, with the struct of its arguments, then `core` or `full`
/// for the list it is on, then its [`Effect`].
macro_rules! tool {
    ($name:ident($arguments:ty), core, $effect:ident $($more:ident)*) => {
        $crate::table::tool!(@ $name, $arguments, true, $effect $($more)*)
    };
    ($name:ident($arguments:ty), full, $effect:ident $($more:ident)*) => {
        $crate::table::tool!(@ $name, $arguments, false, $effect $($more)*)
    };
    (@ $name:ident, $arguments:ty, $core:literal, $effect:ident $($more:ident)*) => {
        $crate::table::Line {
            name: stringify!($name),
            core: $core,
            effect: $crate::hints::Effect::$effect$(.$more())*,
            schema: $crate::schema::of::<$arguments>,
            reads: |checked| $crate::arguments::read::<$arguments>(checked).map(drop),
            answer: |call, checked| Box::pin(async move {
                $name(call, $crate::arguments::read(checked)?).await
            }),
        }
    };
}
pub(super) use tool;

/// Every tool, in the order in which they are shown.
pub(super) static TABLE: LazyLock<Vec<Tool>> = LazyLock::new(|| {
    let families: [&[Line]; 11] = [
        tools::identity::LINES,
        tools::mail::LINES,
        tools::inbox::LINES,
        tools::threads::LINES,
        tools::reservations::LINES,
        tools::macros::LINES,
        tools::contacts::LINES,
        tools::wait::LINES,
        tools::talk::LINES,
        tools::tasks::LINES,
        tools::guard::LINES,
    ];
    let lines = families.into_iter().flatten();
    lines
        .map(|line| {
            let Published { description, schema } = (line.schema)();
            let shown = ListedTool {
                name: line.name.to_owned(),
                description,
                input_schema: schema,
                annotations: line.effect.to_wire(),
            };
            Tool { line: *line, shown }
        })
        .collect()
});

static BY_NAME: LazyLock<HashMap<&'static str, &'static Tool>> =
    LazyLock::new(|| TABLE.iter().map(|tool| (tool.line.name, tool)).collect());

/// The tool of that name, shown or not.
pub(super) fn find(name: &str) -> Option<&'static Tool> {
    BY_NAME.get(name).copied()
}

/// The tools that are listed.
pub(super) fn listed(set: ToolSet) -> impl Iterator<Item = &'static Tool> {
    TABLE.iter().filter(move |tool| set == ToolSet::Full || tool.line.core)
}

/// Calls a tool. Whatever goes wrong is part of the answer.
pub(super) async fn run(call: &Call, name: &str, given: Map<String, Value>) -> Result<Answer, DoorError> {
    let Some(tool) = find(name) else {
        let near = super::errors::nearest(name, TABLE.iter().map(|tool| tool.line.name));
        return Err(DoorError::new(
            "UNKNOWN_TOOL",
            format!("there is no tool '{name}'{}", super::errors::did_you_mean(&near)),
        ));
    };
    let checked = arguments::check(&tool.shown.input_schema, given)?;
    one_request((tool.line.answer)(call, checked)).await
}

#[cfg(test)]
mod tests {
    use posthaste_wire::mcp::tools::ListToolsResult;
    use serde_json::json;

    use super::*;

    fn listed(set: ToolSet) -> usize {
        let tools: Vec<&ListedTool> = super::listed(set).map(|tool| &tool.shown).collect();
        json!({ "tools": tools }).to_string().len()
    }

    #[test]
    fn a_short_list_stays_short() {
        let (core, full) = (listed(ToolSet::Core), listed(ToolSet::Full));
        assert!(core < 15_000, "core: {core} bytes");
        assert!(full < 28_000, "full: {full} bytes");
    }

    // F4: converters to Gemini's and OpenAI's forms want a type for every parameter, and take `enum` for strings only.
    #[test]
    fn every_parameter_has_a_type_that_vendors_take() {
        for tool in TABLE.iter() {
            for (name, shape) in tool.shown.input_schema["properties"].as_object().unwrap() {
                let known = |shape: &Value| match shape["type"].as_str() {
                    Some("string") => true,
                    Some("integer" | "boolean") => shape.get("enum").is_none(),
                    Some("object") => shape["properties"].is_object(),
                    _ => false,
                };
                let is_list = shape["type"] == "array" && known(&shape["items"]);
                assert!(known(shape) || is_list, "{}.{name}: {shape}", tool.line.name);
            }
        }
    }

    // F18: null, an empty text and an empty list for what need not be given are the same as leaving it out.
    #[test]
    fn empty_optional_arguments_count_as_left_out() {
        for tool in TABLE.iter() {
            let required: Vec<&str> =
                tool.shown.input_schema.get("required").map_or_else(Vec::new, |names| {
                    names.as_array().unwrap().iter().filter_map(Value::as_str).collect()
                });
            let needed: Map<String, Value> = required
                .iter()
                .map(|name| {
                    let shape = &tool.shown.input_schema["properties"][*name];
                    let value = match (shape["enum"].get(0), shape["type"].as_str()) {
                        (Some(word), _) => word.clone(),
                        (None, Some("integer")) => json!(1),
                        (None, Some("boolean")) => json!(true),
                        (None, Some("array")) => json!(["x"]),
                        _ => json!("x"),
                    };
                    ((*name).to_owned(), value)
                })
                .collect();
            let plain = format!("{:?}", arguments::check(&tool.shown.input_schema, needed.clone()).unwrap());
            for empty in [Value::Null, json!(""), json!([])] {
                let mut given = needed.clone();
                for name in tool.shown.input_schema["properties"].as_object().unwrap().keys() {
                    // A reply may be without a prefix.
                    if !required.contains(&name.as_str()) && name != "subject_prefix" {
                        given.insert(name.clone(), empty.clone());
                    }
                }
                let filled = arguments::check(&tool.shown.input_schema, given).unwrap_or_else(|problem| {
                    panic!("{} with {empty}: {}", tool.line.name, problem.message);
                });
                assert_eq!(format!("{filled:?}"), plain, "{} with {empty}", tool.line.name);
                (tool.line.reads)(filled)
                    .unwrap_or_else(|error| panic!("{}: {}", tool.line.name, error.message));
            }
        }
    }

    // F19: what each tool may do, as far as a mistake would matter to a client that asks its user by it.
    #[test]
    fn the_effects_of_tools_are_told() {
        let names = |is: fn(&Effect) -> bool| -> Vec<&str> {
            TABLE.iter().filter(|tool| is(&tool.line.effect)).map(|tool| tool.line.name).collect()
        };
        assert_eq!(
            names(|effect| effect.read_only),
            [
                "health_check",
                "whois",
                "list_agents",
                "search_messages",
                "summarize_thread",
                "check_file_reservation_conflicts",
                "list_contacts",
                "wait_for_mail",
                "list_conversations",
                "list_turns",
                "await_message",
                "install_precommit_guard",
                "uninstall_precommit_guard",
            ]
        );
        assert_eq!(
            names(|effect| effect.destructive),
            [
                "deregister_agent",
                "release_file_reservations",
                "force_release_file_reservation",
                "macro_file_reservation_cycle",
                "close_conversation",
                "task_complete",
            ]
        );
        assert!(TABLE.iter().all(|tool| {
            let hints = &serde_json::to_value(tool.shown.annotations).unwrap();
            hints["readOnlyHint"] == tool.line.effect.read_only && hints["openWorldHint"].is_boolean()
        }));
    }

    // Every client shows the list to its model. The file is changed together with what it pins, on purpose only.
    #[test]
    fn the_list_of_tools_keeps_its_bytes() {
        let tools = TABLE.iter().map(|tool| &tool.shown).collect();
        let written = serde_json::to_string(&ListToolsResult::<&ListedTool> { tools }).unwrap();
        assert_eq!(written, include_str!("tools.golden.json").trim_end());
    }

    #[test]
    fn names_are_unique_and_every_tool_says_what_it_is_for() {
        assert_eq!(BY_NAME.len(), TABLE.len());
        for tool in TABLE.iter() {
            assert!(tool.shown.description.len() >= 20, "{}", tool.line.name);
        }
    }
}
