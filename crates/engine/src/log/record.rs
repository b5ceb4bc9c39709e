//! A command as it is written down: what a replicated log carries and what an older office may have written.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::nouns::Caller;
use crate::stamp::Stamp;
use crate::verbs::Command;

/// The version of the form below. A change that older programs would misread gets a new one.
pub const RECORD_VERSION: u32 = 2;

/// A stamped command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The version of this form.
    pub v: u32,
    /// When it was made, and its name.
    pub stamp: Stamp,
    /// Who asked.
    pub caller: Caller,
    /// What was asked.
    #[serde(flatten)]
    pub command: Command,
}

/// Why a record cannot be read.
#[derive(Debug, Error)]
pub enum RecordError {
    /// It was written by a newer program.
    #[error("the record has version {0}, this program knows {RECORD_VERSION}")]
    Newer(u32),
    /// It is not a record.
    #[error("not a record: {0}")]
    Malformed(#[from] serde_json::Error),
}

impl Record {
    /// Stamps a command.
    #[must_use]
    pub fn new(caller: Caller, command: Command) -> Self {
        Self::stamped(Stamp::new(), caller, command)
    }

    /// A command whose stamp was made before.
    pub(crate) fn stamped(stamp: Stamp, caller: Caller, command: Command) -> Self {
        Self { v: RECORD_VERSION, stamp, caller, command }
    }

    /// The record as bytes.
    ///
    /// # Errors
    /// Never for commands made by this program; the type cannot promise it.
    pub fn to_bytes(&self) -> Result<Vec<u8>, RecordError> {
        Ok(serde_json::to_vec(self)?)
    }

    /// Reads a record back.
    ///
    /// # Errors
    /// When it was written by a newer program or is not a record.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, RecordError> {
        #[derive(Deserialize)]
        struct Head {
            v: u32,
        }
        let head: Head = serde_json::from_slice(bytes)?;
        if head.v > RECORD_VERSION {
            return Err(RecordError::Newer(head.v));
        }
        Ok(serde_json::from_slice(bytes)?)
    }
}
