//! The program from outside.

mod harness;
mod layers;
mod listen;
mod tls;
