//! Whose object each method touches: every method of the server's own door, of MAP and of MCP is called on an object of Ann's by
//! its owner, its other party, another agent, an observer, an agent of another realm, an AIRC identity, a caller without a token and
//! an administrator. What each may do with a class of objects is read from the table in `docs/SECURITY.md`; a method without a row
//! fails here.

mod rows;
mod things;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rows::{Act, Row};
use things::{Class, World};

/// The callers, in the order of the columns of the table in SECURITY.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Caller {
    Owner,
    Party,
    OtherAgent,
    Observer,
    OtherRealm,
    Airc,
    NoToken,
    Administrator,
}

pub(super) const CALLERS: [Caller; 8] = [
    Caller::Owner,
    Caller::Party,
    Caller::OtherAgent,
    Caller::Observer,
    Caller::OtherRealm,
    Caller::Airc,
    Caller::NoToken,
    Caller::Administrator,
];

/// What the table says of one class of objects: for each caller the words in its cell.
type Promises = BTreeMap<String, BTreeMap<Caller, BTreeSet<String>>>;

/// Reads the table whose first heading is `object`.
fn promises() -> Promises {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/SECURITY.md");
    let text = std::fs::read_to_string(page).unwrap();
    let start = text.find("| object |").expect("the table of objects in SECURITY.md");
    let rows = text[start..].lines().take_while(|line| line.starts_with('|')).skip(2);
    rows.map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        assert_eq!(cells.len(), CALLERS.len() + 1, "one cell for each caller: {line}");
        let words = |cell: &str| cell.split(',').map(|word| word.trim().to_owned()).collect();
        (cells[0].to_owned(), CALLERS.into_iter().zip(cells[1..].iter().map(|cell| words(cell))).collect())
    })
    .collect()
}

#[tokio::test]
async fn every_method_keeps_to_what_security_md_says_of_its_object() {
    let promises = promises();
    let rows = rows::all();
    rows::check_complete(&rows);
    let classes: BTreeSet<_> = Class::ALL.iter().map(|class| class.name().to_owned()).collect();
    assert_eq!(promises.keys().cloned().collect::<BTreeSet<_>>(), classes, "the classes in SECURITY.md");
    let world = World::open().await;
    let mut wrong = Vec::new();
    for row in &rows {
        for caller in CALLERS {
            if let Some(problem) = check(&world, &promises, row, caller).await {
                wrong.push(problem);
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Calls one method on a fresh object as one caller; says what is not as promised.
async fn check(world: &World, promises: &Promises, row: &Row, caller: Caller) -> Option<String> {
    let thing = world.make(row.class).await;
    let before = world.state(&thing).await;
    let answer = world.call(caller, row.door, &row.method, &(row.params)(&thing, world.name(caller))).await;
    let after = world.state(&thing).await;
    let what = format!("{} {} on {} as {caller:?}", row.door.name(), row.method, row.class.name());
    let changed = before != after;
    let shown = answer.text.contains(&thing.marker);
    let cell = &promises[row.class.name()][&caller];
    let (may_read, mut may_change) = (cell.contains("reads"), cell.contains("changes"));
    may_change |= row.act == Act::Joins && cell.contains("joins");
    if shown && !may_read {
        return Some(format!("{what}: shows it: {}", answer.text));
    }
    if changed && !may_change {
        return Some(format!("{what}: changed it:\n  {before}\n  {after}\n  {}", answer.text));
    }
    let done = match row.act {
        Act::Reads => shown || !may_read,
        Act::Changes => changed || !may_change,
        Act::Joins | Act::Neither => true,
    };
    // The positive control: a call that works for no caller would pass every other check.
    (caller == row.works_for && !done).then(|| format!("{what}: has no effect: {}", answer.text))
}
