//! What stands before every door: listener, TLS, middleware, and how the server starts.

mod layers;
mod listen;
mod start;
mod tls;
