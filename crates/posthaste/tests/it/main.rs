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
mod mcp;
mod mcp_client;
mod mcp_commands;
mod mcp_guard;
mod mcp_load;
mod mcp_streams;
mod office;
mod readme;
mod tidy;
mod tls;
