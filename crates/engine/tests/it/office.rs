//! Many realms in one directory, held by one process, each opened when needed and closed when not.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use posthaste_engine::limits::{Limits, Rules};
use posthaste_engine::nouns::{Caller, RealmName};
use posthaste_engine::store::{self, open_writer};
use posthaste_engine::verbs::agents::Register;
use posthaste_engine::verbs::office::SetRules;
use posthaste_engine::{EngineError, Fault, Office, OfficeGuard, Refusal, database_path, realms_in};
use tempfile::TempDir;

use crate::child;
use crate::harness::{id, member, named};

fn realm(name: &str) -> RealmName {
    RealmName::new(name).expect("a realm name")
}

fn restless() -> Limits {
    Limits { realm_idle: Duration::ZERO, ..Limits::default() }
}

fn open(directory: &Path, limits: Limits) -> (Office, OfficeGuard) {
    Office::open(directory, limits).expect("a free directory")
}

async fn open_names(office: &Office) -> Vec<String> {
    office.open_realms().await.iter().map(|engine| engine.realm().to_string()).collect()
}

fn holder_of(directory: &Path) -> Option<String> {
    match Office::open(directory, Limits::default()) {
        Err(Fault::Locked { holder, directory: named }) => {
            assert_eq!(named, directory.display().to_string());
            Some(holder)
        }
        Ok(_) => None,
        Err(other) => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn realms_are_opened_on_first_use_closed_when_idle_and_opened_again_with_their_content() {
    let directory = TempDir::new().unwrap();
    let (office, guard) = open(directory.path(), restless());
    assert_eq!(office.realms().unwrap(), Vec::new());
    for name in ["east", "west", "main"] {
        assert!(!office.has_realm(&realm(name)));
        let engine = office.realm(&realm(name)).await.expect("a realm");
        engine.submit(&member(name), named(name)).await.expect("a free name");
    }
    assert_eq!(open_names(&office).await, ["east", "main", "west"]);
    let in_use = office.realm(&realm("main")).await.expect("a realm");
    office.tidy().await;
    assert_eq!(open_names(&office).await, ["main"], "idle ones are closed, one in use is not");
    assert_eq!(office.realms().unwrap(), ["east", "main", "west"].map(realm));
    let east = office.realm(&realm("east")).await.expect("a realm");
    let found = |name: &str| east.read_blocking(|view| view.agent(&Caller::office(), &id(name))).is_ok();
    assert_eq!((found("east"), found("west")), (true, false), "its own content and nobody else's");
    east.submit(&member("more"), named("more")).await.expect("it can be written again");
    drop((east, in_use));
    guard.close().await;
}

#[tokio::test]
async fn a_realm_that_is_only_followed_stays_open() {
    let directory = TempDir::new().unwrap();
    let (office, _guard) = open(directory.path(), restless());
    let engine = office.realm(&realm("main")).await.expect("a realm");
    let all = posthaste_engine::Filter::everything();
    let mut feed =
        engine.follow(&Caller::office(), all, posthaste_engine::Start::Now, 8).await.expect("a feed");
    drop(engine);
    office.tidy().await;
    let engine = office.realm(&realm("main")).await.expect("a realm");
    engine.submit(&member("ann"), named("ann")).await.expect("a free name");
    let step = feed.next().await.expect("a step");
    assert!(matches!(step, posthaste_engine::Step::Event { number: 1, .. }), "{step:?}");
}

#[tokio::test]
async fn a_realm_that_is_recently_used_stays_open() {
    let directory = TempDir::new().unwrap();
    let (office, guard) = open(directory.path(), Limits::default());
    office.realm(&realm("main")).await.expect("a realm");
    office.tidy().await;
    assert_eq!(open_names(&office).await, ["main"]);
    guard.close().await;
}

#[tokio::test]
async fn the_least_used_idle_realm_is_closed_for_another() {
    let directory = TempDir::new().unwrap();
    let limits = Limits { open_realms: 2, queue_wait: Duration::from_millis(20), ..Limits::default() };
    let (office, guard) = open(directory.path(), limits);
    let a = office.realm(&realm("a")).await.expect("a realm");
    a.submit(&member("ann"), named("ann")).await.expect("a free name");
    office.realm(&realm("b")).await.expect("a realm");
    office.realm(&realm("c")).await.expect("b makes way: a is in use");
    assert_eq!(open_names(&office).await, ["a", "c"]);
    let c = office.realm(&realm("c")).await.expect("an open one is no problem");
    let third = office.realm(&realm("d")).await.expect_err("both are in use");
    assert_eq!(third.refusal(), Some(&Refusal::TooMany { what: "realms in use", limit: 2 }));
    drop((a, c));
    for name in ["d", "e", "f", "a"] {
        office.realm(&realm(name)).await.expect("there is room again");
    }
    let a = office.realm(&realm("a")).await.expect("a realm");
    a.read_blocking(|view| view.agent(&Caller::office(), &id("ann"))).expect("what it had is there");
    assert_eq!(open_names(&office).await.len(), 2);
    drop(a);
    guard.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_realms_are_opened_at_once_and_none_twice() {
    let directory = TempDir::new().unwrap();
    let (office, guard) = open(directory.path(), Limits { open_realms: 3, ..Limits::default() });
    let calls = (0..48).map(|number| {
        let (office, name) = (office.clone(), realm(&format!("r{}", number % 12)));
        tokio::spawn(async move {
            let engine = office.realm(&name).await?;
            engine.submit(&member("ann"), named(&format!("agent-{number}"))).await.map(drop)
        })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.expect("no panic").expect("a realm");
    }
    assert!(open_names(&office).await.len() <= 3);
    guard.close().await;
    assert!(holder_of(directory.path()).is_none());
}

#[tokio::test]
async fn a_realm_name_leads_to_a_file_in_the_directory_and_nowhere_else() {
    let directory = TempDir::new().unwrap();
    for bad in
        ["", ".", "..", "../up", "a/b", "a\\b", "/etc/passwd", ".hidden", "nul\0", "x".repeat(65).as_str()]
    {
        assert!(RealmName::new(bad).is_err(), "{bad:?}");
    }
    for good in ["main", "a..b", "0", "x".repeat(64).as_str()] {
        let path = database_path(directory.path(), &realm(good));
        assert_eq!(path.parent(), Some(realms_in(directory.path()).as_path()), "{good:?}");
    }
    let (office, guard) = open(directory.path(), Limits::default());
    office.realm(&realm("main")).await.expect("a realm");
    std::fs::write(realms_in(directory.path()).join("..db"), "not a realm").unwrap();
    std::fs::write(realms_in(directory.path()).join("notes.txt"), "not a realm").unwrap();
    assert_eq!(office.realms().unwrap(), [realm("main")], "files that are not realms are passed over");
    guard.close().await;
}

#[tokio::test]
async fn one_realm_opened_by_many_at_once_is_opened_once() {
    let directory = TempDir::new().unwrap();
    let (office, guard) = open(directory.path(), Limits::default());
    let tasks: Vec<_> = (0..20)
        .map(|n| {
            let office = office.clone();
            tokio::spawn(async move {
                let engine = office.realm(&realm("main")).await.expect("a realm");
                let name = format!("agent-{n}");
                engine.submit(&member(&name), named(&name)).await.map(drop)
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap().expect("a free name");
    }
    let engine = office.realm(&realm("main")).await.expect("a realm");
    assert_eq!(engine.meter().batches.sum(), 20, "all through one writer");
    drop(engine);
    guard.close().await;
}

#[tokio::test]
async fn an_opening_or_closing_that_nobody_waits_for_does_not_meet_the_next() {
    let directory = TempDir::new().unwrap();
    let (office, guard) = open(directory.path(), restless());
    for round in 0..30 {
        let name = realm(&format!("realm-{}", round / 3));
        // Polled once and given up, in the middle of it.
        tokio::select! {
            biased;
            _ = office.realm(&name) => {}
            () = std::future::ready(()) => {}
        }
        let engine = office.realm(&name).await.expect("the opening given up does not stand in the way");
        engine
            .submit(
                &member("ann"),
                Register { existing: posthaste_engine::verbs::agents::Existing::TakeOver, ..named("ann") },
            )
            .await
            .expect("ann");
        drop(engine);
        tokio::select! {
            biased;
            () = office.tidy() => {}
            () = tokio::task::yield_now() => {}
        }
    }
    guard.close().await;
}

#[tokio::test]
async fn tidying_ends_even_under_rules_that_sweep_nothing() {
    let directory = TempDir::new().unwrap();
    let (office, guard) = open(directory.path(), Limits::default());
    let engine = office.realm(&realm("main")).await.expect("a realm");
    let rules = Rules { sweep_rows: 0, ..Rules::default() };
    engine.submit(&Caller::office(), SetRules { rules }).await.expect("rules");
    drop(engine);
    let tidied = tokio::time::timeout(Duration::from_secs(10), office.tidy()).await;
    assert!(tidied.is_ok(), "it sweeps for ever");
    guard.close().await;
}

#[tokio::test]
async fn a_second_office_is_refused_with_the_holders_pid_until_the_first_has_closed() {
    let directory = TempDir::new().unwrap();
    let (office, guard) = open(directory.path(), Limits::default());
    assert_eq!(holder_of(directory.path()), Some(std::process::id().to_string()));
    office.realm(&realm("main")).await.expect("the refused one did no harm");
    guard.close().await;
    assert_eq!(holder_of(directory.path()), None, "free although a handle is left");
    let late = office.realm(&realm("main")).await;
    assert!(
        matches!(late, Err(EngineError::Failed(Fault::Closing))),
        "and that handle opens nothing: {late:?}"
    );
}

#[tokio::test]
async fn the_directory_stays_held_for_as_long_as_anyone_may_write_into_it() {
    let directory = TempDir::new().unwrap();
    let (office, guard) = open(directory.path(), Limits::default());
    let engine = office.realm(&realm("main")).await.expect("a realm");
    drop((office, guard));
    assert!(holder_of(directory.path()).is_some(), "a realm is still open");
    engine.submit(&member("ann"), named("ann")).await.expect("and can be written");
    drop(engine);
    // The writer ends by itself now; nobody is left to wait for it.
    while holder_of(directory.path()).is_some() {
        tokio::task::yield_now().await;
    }
}

#[test]
fn another_process_is_refused_and_free_to_start_once_the_holder_is_killed() {
    if let Some(directory) = child::part() {
        let (_office, _guard) = open(&directory, Limits::default());
        println!("holding");
        std::io::stdout().flush().unwrap();
        // Until the first process ends this one, or itself.
        std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
        return;
    }
    let directory = TempDir::new().unwrap();
    let test = "office::another_process_is_refused_and_free_to_start_once_the_holder_is_killed";
    let mut second = child::second_part(test, directory.path(), "");
    let mut second = second.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a second process");
    let mut lines = BufReader::new(second.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("holding")), "the second process has the directory");
    assert_eq!(holder_of(directory.path()), Some(second.id().to_string()));
    second.kill().unwrap();
    second.wait().unwrap();
    assert_eq!(holder_of(directory.path()), None, "the lock died with its holder");
}

#[tokio::test]
async fn a_realm_with_a_newer_database_is_refused() {
    let directory = TempDir::new().unwrap();
    let (office, guard) = open(directory.path(), Limits::default());
    std::fs::create_dir_all(realms_in(directory.path())).unwrap();
    let path = office.path_of(&realm("main"));
    open_writer(&path).unwrap().pragma_update(None, "user_version", store::VERSION + 1).unwrap();
    let refused = office.realm(&realm("main")).await;
    let Err(EngineError::Failed(Fault::NewerDatabase { found, known })) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!((found, known), (store::VERSION + 1, store::VERSION));
    assert_eq!(open_names(&office).await, Vec::<String>::new());
    guard.close().await;
}

#[tokio::test]
async fn an_office_closes_although_somebody_still_holds_a_realm() {
    let directory = tempfile::TempDir::new().expect("a temporary directory");
    let (office, guard) = Office::open(directory.path(), Limits::default()).expect("an office");
    let engine = office.realm(&RealmName::main()).await.expect("a realm");
    engine.submit(&member("ann"), named("ann")).await.expect("a free name");
    guard.close().await;
    assert!(engine.read(|view| view.head()).await.expect("a head") > 0, "reads go on");
    let late = engine.submit(&member("bob"), named("bob")).await;
    assert!(matches!(late, Err(EngineError::Failed(Fault::Closing))), "{late:?}");
    Office::open(directory.path(), Limits::default()).expect("the directory is free");
}
