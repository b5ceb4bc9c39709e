//! posthaste's own methods, `x-posthaste/…`: names and paths that doors, command line and load generators share.

/// What every method's name starts with.
pub const PREFIX: &str = "x-posthaste/";
/// Where the methods are called.
pub const PATH: &str = "/x-posthaste/rpc";
/// Exports a realm as lines of JSON.
pub const EXPORT_PATH: &str = "/x-posthaste/export";
/// The server's own figures.
pub const STATUS_PATH: &str = "/x-posthaste/status";
/// Hands out a backup of one realm, or of all.
pub const BACKUP_PATH: &str = "/x-posthaste/backup";
