//! See `properties::office::books_export`.
#![no_main]

#[path = "../properties/office.rs"]
#[allow(dead_code)]
mod office;

use std::cell::RefCell;

use posthaste_engine::store;

thread_local! {
    static BOOKS: RefCell<rusqlite::Connection> = RefCell::new(fresh());
}

fn fresh() -> rusqlite::Connection {
    let folder = std::env::temp_dir().join(format!("posthaste-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let books = store::open_writer(&folder.join("books.db")).expect("new books");
    // These books need not survive anything, and the disk would be most of the work.
    books.pragma_update(None, "synchronous", "off").expect("a setting");
    books
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    BOOKS.with_borrow_mut(|books| office::books_export(books, bytes));
});
