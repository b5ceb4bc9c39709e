//! The program from outside: its command line, its configuration and its listener.

mod cli;
mod commands;
mod config;
mod crash;
mod harness;
mod layers;
mod listen;
mod map;
mod map_client;
mod map_levels;
mod office;
mod readme;
mod tidy;
mod tls;
mod web;
