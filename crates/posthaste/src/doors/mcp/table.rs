//! The one table of tools: name, purpose, arguments, and the function that answers. Both ways of being called (rmcp's
//! and the plain one) read it, and so does `tools/list`.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::LazyLock;

use posthaste_engine::one_request;
use serde_json::{Map, Value, json};

use super::answer::Answer;
use super::args::{Args, Spec};
use super::call::Call;
use super::errors::Problem;
use super::tools;
use crate::config::ToolSet;

/// What a tool answers, some time.
pub(super) type Answering<'c> = Pin<Box<dyn Future<Output = Result<Answer, Problem>> + Send + 'c>>;
/// The function behind a tool.
pub(super) type Handler = for<'c> fn(&'c Call, Args) -> Answering<'c>;

/// A line of the table as its family writes it down.
#[derive(Clone, Copy)]
pub(super) struct Line {
    pub(super) name: &'static str,
    /// Whether it is shown when few tools are asked for.
    pub(super) core: bool,
    /// What it is for, for an agent that has to choose.
    pub(super) about: &'static str,
    /// Its arguments: see [`Spec::parse`].
    pub(super) takes: &'static str,
    pub(super) answer: Handler,
}

/// A tool as it is called and shown.
pub(super) struct Tool {
    pub(super) line: Line,
    pub(super) specs: Vec<Spec>,
    /// Its arguments as JSON Schema.
    pub(super) schema: Map<String, Value>,
}

impl Tool {
    /// Whether it tells how it is getting on, if the caller wants to know.
    pub(super) fn makes_progress(&self) -> bool {
        matches!(self.line.name, "wait_for_mail" | "await_message")
    }

    pub(super) fn shown(&self) -> Value {
        json!({ "name": self.line.name, "description": self.line.about, "inputSchema": self.schema })
    }
}

/// Makes a line of the table: the function's name is the tool's, `core` or `full` the list it is on.
macro_rules! tool {
    ($name:ident, core, $about:literal, $takes:expr) => {
        $crate::doors::mcp::table::tool!(@ $name, true, $about, $takes)
    };
    ($name:ident, full, $about:literal, $takes:expr) => {
        $crate::doors::mcp::table::tool!(@ $name, false, $about, $takes)
    };
    (@ $name:ident, $core:literal, $about:literal, $takes:expr) => {
        $crate::doors::mcp::table::Line {
            name: stringify!($name),
            core: $core,
            about: $about,
            takes: $takes,
            answer: |call, args| Box::pin($name(call, args)),
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
            let specs = Spec::parse(line.takes);
            Tool { line: *line, schema: Spec::schema(&specs), specs }
        })
        .collect()
});

static BY_NAME: LazyLock<HashMap<&'static str, &'static Tool>> =
    LazyLock::new(|| TABLE.iter().map(|tool| (tool.line.name, tool)).collect());

/// The tool of that name, shown or not.
pub(super) fn find(name: &str) -> Option<&'static Tool> {
    BY_NAME.get(name).copied()
}

/// The tools that are shown.
pub(super) fn shown(set: ToolSet) -> impl Iterator<Item = &'static Tool> {
    TABLE.iter().filter(move |tool| set == ToolSet::Full || tool.line.core)
}

/// Calls a tool. Whatever goes wrong is part of the answer.
pub(super) async fn run(call: &Call, name: &str, given: Map<String, Value>) -> Result<Answer, Problem> {
    let Some(tool) = find(name) else {
        let near = super::errors::nearest(name, TABLE.iter().map(|tool| tool.line.name));
        return Err(Problem::new(
            "UNKNOWN_TOOL",
            format!("there is no tool '{name}'{}", super::errors::did_you_mean(&near)),
        ));
    };
    let args = Args::check(&tool.specs, given)?;
    one_request((tool.line.answer)(call, args)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(set: ToolSet) -> usize {
        let tools: Vec<Value> = shown(set).map(Tool::shown).collect();
        json!({ "tools": tools }).to_string().len()
    }

    #[test]
    fn a_short_list_stays_short() {
        let (core, full) = (listed(ToolSet::Core), listed(ToolSet::Full));
        assert!(core < 15_000, "core: {core} bytes");
        assert!(full < 28_000, "full: {full} bytes");
    }

    #[test]
    fn names_are_unique_and_every_tool_says_what_it_is_for() {
        assert_eq!(BY_NAME.len(), TABLE.len());
        for tool in TABLE.iter() {
            assert!(tool.line.about.len() >= 20, "{}", tool.line.name);
        }
    }
}
