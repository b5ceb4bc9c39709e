//! The program from outside: its command line, its configuration and its listener.

mod cli;
mod config;
mod harness;
mod layers;
mod listen;
mod tls;
