//! The MAP door from outside, through the real program.

pub(crate) mod client;
mod draft;
mod durable;
mod flow;
mod levels;
mod mail;
mod mail_rules;
mod order;
mod params;
mod rejections;
mod returns;
mod rules;
mod sdk;
mod sessions;
mod shapes;
mod tls;
mod tokens;
