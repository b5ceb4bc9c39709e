//! The program from outside: its command line, its configuration and its listener.

mod bridge;
mod bridge_crash;
mod cli;
mod commands;
mod config;
mod crash;
mod files;
mod harness;
mod layers;
mod listen;
mod mail_commands;
mod map;
mod map_client;
mod map_levels;
mod office;
mod readme;
mod tidy;
mod tls;
