//! Attacks from outside, and what comes of them. Each test is named in `docs/SECURITY.md`.

mod costs;
mod forms;
mod leaks;
mod paths;
mod rates;
mod reach;
mod streams;
