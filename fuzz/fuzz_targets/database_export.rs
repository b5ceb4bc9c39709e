//! See `properties::server::database_export`.
#![no_main]

#[path = "../properties/server.rs"]
#[allow(dead_code)]
mod server;

use std::cell::RefCell;

use posthaste_engine::store;

thread_local! {
    static DATABASE: RefCell<rusqlite::Connection> = RefCell::new(fresh());
}

fn fresh() -> rusqlite::Connection {
    let folder = std::env::temp_dir().join(format!("posthaste-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let db = store::open_writer(&folder.join("realm.db")).expect("a new database");
    // This database need not survive a crash, and syncs would take most of the time.
    db.pragma_update(None, "synchronous", "off").expect("a setting");
    db
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    DATABASE.with_borrow_mut(|db| server::database_export(db, bytes));
});
