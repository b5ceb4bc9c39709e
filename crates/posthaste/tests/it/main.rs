//! The program from outside: its command line, its configuration, its listener and its doors.

mod airc;
mod attachments;
mod attack;
mod authority;
mod cli;
mod crash;
mod crossing;
mod faults;
mod files;
mod harness;
mod host;
mod map;
mod mcp;
mod office;
mod ownership;
mod parsers;
mod swarm;
mod tidy;
mod web;
