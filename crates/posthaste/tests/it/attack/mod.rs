//! Attacks from outside. `docs/SECURITY.md` names the tests.

mod costs;
mod egress;
mod forms;
mod leaks;
mod names;
mod observing;
mod paths;
mod rates;
mod streams;
mod swarms;
mod threads;
mod tokens;
mod work_limits;
