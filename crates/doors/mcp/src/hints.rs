//! What a tool does to the world, as `annotations` in `tools/list`: clients decide by it whether to ask their user first.

use posthaste_wire::mcp::tools::ToolAnnotations;

/// The effect of a tool: what may happen with any arguments, not only with the defaults.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effect {
    pub(super) read_only: bool,
    pub(super) destructive: bool,
    pub(super) idempotent: bool,
    pub(super) open_world: bool,
}

impl Effect {
    /// Adds something with every call.
    pub(super) const ADDS: Self =
        Self { read_only: false, destructive: false, idempotent: false, open_world: false };
    /// Changes nothing; `last_active_ts` does not count.
    pub(super) const READS: Self = Self { read_only: true, ..Self::ADDS };
    /// Sets something; the same call again changes nothing more.
    pub(super) const SETS: Self = Self { idempotent: true, ..Self::ADDS };
    /// Takes away something that was there; the same call again changes nothing more.
    pub(super) const ENDS: Self = Self { destructive: true, idempotent: true, ..Self::ADDS };
    /// Adds something with every call, and may take it away again.
    pub(super) const CYCLES: Self = Self { destructive: true, ..Self::ADDS };

    /// It reaches other agents, which may be programs of other people on other machines.
    pub(super) const fn reaches_agents(self) -> Self {
        Self { open_world: true, ..self }
    }

    /// As `tools/list` shows it. For a tool that only reads, two of the hints mean nothing.
    pub(super) fn to_wire(self) -> ToolAnnotations {
        ToolAnnotations {
            read_only_hint: self.read_only,
            destructive_hint: (!self.read_only).then_some(self.destructive),
            idempotent_hint: (!self.read_only).then_some(self.idempotent),
            open_world_hint: self.open_world,
        }
    }
}
