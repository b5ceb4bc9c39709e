//! Attacks from outside, and what comes of them. Each test is named in `docs/SECURITY.md`.

mod costs;
mod forms;
mod leaks;
mod names;
mod observing;
mod paths;
mod rates;
mod reach;
mod streams;
mod swarms;
mod threads;
mod tokens;
mod work;
