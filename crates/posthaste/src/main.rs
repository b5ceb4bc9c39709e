//! The program: a cryptography provider, then the command line.

use std::process::ExitCode;

// Messages are many small allocations made on one thread and freed on another, which mimalloc handles well.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Before anything can touch TLS: rustls panics at first use if it has to guess a provider.
    // An error means that one is installed already, which is what we want.
    let _ = rustls::crypto::ring::default_provider().install_default();
    posthaste::cli::run(std::env::args_os())
}
