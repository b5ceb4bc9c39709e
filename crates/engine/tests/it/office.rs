//! Many realms in one data directory, owned by one process, opened on demand and closed when idle.

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

use crate::harness::{id, member, named};
use crate::subprocess;

fn realm(name: &str) -> RealmName {
    RealmName::new(name).expect("a realm name")
}

fn closing_when_idle() -> Limits {
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
async fn realms_open_on_first_use_close_when_idle_and_keep_their_content() {
    let directory = TempDir::new().unwrap();
    let (office, guard) = open(directory.path(), closing_when_idle());
    assert_eq!(office.realms().unwrap(), Vec::new());
    for name in ["east", "west", "main"] {
        assert!(!office.has_realm(&realm(name)));
        let engine = office.realm(&realm(name)).await.expect("a realm");
        engine.submit(&member(name), named(name)).await.expect("a free name");
    }
    assert_eq!(open_names(&office).await, ["east", "main", "west"]);
    let in_use = office.realm(&realm("main")).await.expect("a realm");
    office.tidy().await;
    assert_eq!(open_names(&office).await, ["main"], "idle realms are closed, the one in use is not");
    assert_eq!(office.realms().unwrap(), ["east", "main", "west"].map(realm));
    let east = office.realm(&realm("east")).await.expect("a realm");
    let found = |name: &str| east.read_blocking(|view| view.agent(&Caller::office(), &id(name))).is_ok();
    assert_eq!((found("east"), found("west")), (true, false), "its own content and no other realm's");
    east.submit(&member("more"), named("more")).await.expect("it can be written again");
    drop((east, in_use));
    guard.close().await;
}

#[tokio::test]
async fn realm_with_a_feed_stays_open() {
    let directory = TempDir::new().unwrap();
    let (office, _guard) = open(directory.path(), closing_when_idle());
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
async fn recently_used_realm_stays_open() {
    let directory = TempDir::new().unwrap();
    let (office, guard) = open(directory.path(), Limits::default());
    office.realm(&realm("main")).await.expect("a realm");
    office.tidy().await;
    assert_eq!(open_names(&office).await, ["main"]);
    guard.close().await;
}

#[tokio::test]
async fn least_recently_used_idle_realm_is_closed_for_another() {
    let directory = TempDir::new().unwrap();
    let limits = Limits { open_realms: 2, queue_wait: Duration::from_millis(20), ..Limits::default() };
    let (office, guard) = open(directory.path(), limits);
    let a = office.realm(&realm("a")).await.expect("a realm");
    a.submit(&member("ann"), named("ann")).await.expect("a free name");
    office.realm(&realm("b")).await.expect("a realm");
    office.realm(&realm("c")).await.expect("b is closed, as a is in use");
    assert_eq!(open_names(&office).await, ["a", "c"]);
    let c = office.realm(&realm("c")).await.expect("an open realm is always available");
    let third = office.realm(&realm("d")).await.expect_err("both are in use");
    assert_eq!(third.refusal(), Some(&Refusal::TooMany { what: "realms in use", limit: 2 }));
    drop((a, c));
    for name in ["d", "e", "f", "a"] {
        office.realm(&realm(name)).await.expect("there is room again");
    }
    let a = office.realm(&realm("a")).await.expect("a realm");
    a.read_blocking(|view| view.agent(&Caller::office(), &id("ann"))).expect("its content is there");
    assert_eq!(open_names(&office).await.len(), 2);
    drop(a);
    guard.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_realms_open_concurrently_and_each_once() {
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
async fn realm_name_maps_to_a_file_inside_the_directory() {
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
    assert_eq!(office.realms().unwrap(), [realm("main")], "files that are not realms are skipped");
    guard.close().await;
}

#[tokio::test]
async fn concurrent_opens_of_one_realm_open_it_once() {
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
async fn cancelled_open_or_close_does_not_disturb_the_next() {
    let directory = TempDir::new().unwrap();
    let (office, guard) = open(directory.path(), closing_when_idle());
    for round in 0..30 {
        let name = realm(&format!("realm-{}", round / 3));
        // Polled once, then cancelled in the middle.
        tokio::select! {
            biased;
            _ = office.realm(&name) => {}
            () = std::future::ready(()) => {}
        }
        let engine = office.realm(&name).await.expect("the cancelled open has no effect");
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
async fn tidy_ends_when_rules_sweep_no_rows() {
    let directory = TempDir::new().unwrap();
    let (office, guard) = open(directory.path(), Limits::default());
    let engine = office.realm(&realm("main")).await.expect("a realm");
    let rules = Rules { sweep_rows: 0, ..Rules::default() };
    engine.submit(&Caller::office(), SetRules { rules }).await.expect("rules");
    drop(engine);
    let tidied = tokio::time::timeout(Duration::from_secs(10), office.tidy()).await;
    assert!(tidied.is_ok(), "it sweeps forever");
    guard.close().await;
}

#[tokio::test]
async fn second_office_is_refused_with_the_holder_pid_until_the_first_closes() {
    let directory = TempDir::new().unwrap();
    let (office, guard) = open(directory.path(), Limits::default());
    assert_eq!(holder_of(directory.path()), Some(std::process::id().to_string()));
    office.realm(&realm("main")).await.expect("the refused open has no effect");
    guard.close().await;
    assert_eq!(holder_of(directory.path()), None, "free although a handle remains");
    let late = office.realm(&realm("main")).await;
    assert!(
        matches!(late, Err(EngineError::Failed(Fault::Closing))),
        "and that handle opens no realm: {late:?}"
    );
}

#[tokio::test]
async fn directory_stays_locked_while_a_realm_is_open() {
    let directory = TempDir::new().unwrap();
    let (office, guard) = open(directory.path(), Limits::default());
    let engine = office.realm(&realm("main")).await.expect("a realm");
    drop((office, guard));
    assert!(holder_of(directory.path()).is_some(), "a realm is still open");
    engine.submit(&member("ann"), named("ann")).await.expect("and accepts writes");
    drop(engine);
    // The writer thread ends by itself; no handle is left to join it.
    while holder_of(directory.path()).is_some() {
        tokio::task::yield_now().await;
    }
}

#[test]
fn lock_is_released_when_the_holding_process_is_killed() {
    if let Some(directory) = subprocess::assigned_directory() {
        let (_office, _guard) = open(&directory, Limits::default());
        println!("holding");
        std::io::stdout().flush().unwrap();
        // Until the parent kills this process, or exits.
        std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
        return;
    }
    let directory = TempDir::new().unwrap();
    let test = "office::lock_is_released_when_the_holding_process_is_killed";
    let mut child = subprocess::command(test, directory.path(), "");
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a child process");
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("holding")), "the child holds the directory");
    assert_eq!(holder_of(directory.path()), Some(child.id().to_string()));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(holder_of(directory.path()), None, "the lock ended with its holder");
}

#[tokio::test]
async fn newer_database_version_is_refused_and_left_unchanged() {
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
async fn office_closes_while_a_realm_handle_is_held() {
    let directory = tempfile::TempDir::new().expect("a temporary directory");
    let (office, guard) = Office::open(directory.path(), Limits::default()).expect("an office");
    let engine = office.realm(&RealmName::main()).await.expect("a realm");
    engine.submit(&member("ann"), named("ann")).await.expect("a free name");
    guard.close().await;
    assert!(engine.read(|view| view.head()).await.expect("a head") > 0, "reads still work");
    let late = engine.submit(&member("bob"), named("bob")).await;
    assert!(matches!(late, Err(EngineError::Failed(Fault::Closing))), "{late:?}");
    Office::open(directory.path(), Limits::default()).expect("the directory is free");
}
