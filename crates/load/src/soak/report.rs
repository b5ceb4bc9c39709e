//! The report of a soak: for people, and as JSON.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::ledger::{Finding, Totals};
use super::shared::DoorCount;
use super::watch::{Sample, Trend};
use posthaste::cli::exit::Failure;
use posthaste::cli::output::{Output, Style, Table};
use posthaste_host::units::{show_bytes, show_span};

#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) ok: bool,
    /// Ended by Ctrl-C.
    pub(super) interrupted: bool,
    pub(super) seed: u64,
    pub(super) seconds: u64,
    pub(super) doors: BTreeMap<&'static str, DoorCount>,
    pub(super) messages: Totals,
    pub(super) actions: BTreeMap<&'static str, u64>,
    pub(super) kills: usize,
    /// How long each start after a kill took, in milliseconds.
    pub(super) opened_again_ms: Vec<u64>,
    /// The server's counters, and the fleet's.
    pub(super) counters: BTreeMap<String, [u64; 2]>,
    pub(super) refusals: BTreeMap<String, u64>,
    pub(super) memory: Option<Trend>,
    /// Before the fleet came, and after it left.
    pub(super) at_rest: Option<[Sample; 2]>,
    pub(super) most: Option<Sample>,
    pub(super) warnings_in_log: u64,
    /// Of the soak itself.
    pub(super) own_bytes: Option<u64>,
    pub(super) finding_count: u64,
    pub(super) findings: Vec<Finding>,
    /// The directory, if it was kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) kept: Option<String>,
}

impl Report {
    pub(super) fn show(&self, output: &Output) -> Result<(), Failure> {
        if output.is_json() {
            return output.json(self);
        }
        let mut table = Table::new(["DOOR", "AGENTS", "ACKNOWLEDGED", "UNANSWERED", "REFUSED"]);
        for (door, count) in &self.doors {
            let cells = [
                (*door).to_owned(),
                count.agents.to_string(),
                count.acknowledged.to_string(),
                count.unanswered.to_string(),
                count.refused.to_string(),
            ];
            table.row(cells, Style::Plain);
        }
        output.table(&table)?;
        let actions: Vec<String> =
            self.actions.iter().map(|(what, count)| format!("{count} {}", what.replace('_', " "))).collect();
        output.line(&format!("\n{}", actions.join(", ")))?;
        let slowest = self.opened_again_ms.iter().max().copied().unwrap_or_default();
        let Totals { in_database, at_readers, repeated_after_a_loss, loose_lost_in_kills, .. } =
            self.messages;
        output.line(&format!(
            "{} kills, open again within {}; {in_database} messages and turns in the event log, {at_readers} at readers, \
             {repeated_after_a_loss} repeated after a loss, {loose_lost_in_kills} sent fire-and-forget lost in kills",
            self.kills,
            show_span(Duration::from_millis(slowest)),
        ))?;
        if let Some(trend) = &self.memory {
            output.line(&format!(
                "memory {} then {} ({} s apart at most, {} allowed)",
                show_bytes(trend.early_bytes),
                show_bytes(trend.late_bytes),
                trend.seconds,
                show_bytes(trend.allowed_bytes),
            ))?;
        }
        if let (Some([base, rest]), Some(most)) = (&self.at_rest, &self.most) {
            output.line(&format!(
                "sockets {} before, {} at most, {} after; files {}, {}, {}",
                base.sockets, most.sockets, rest.sockets, base.files, most.files, rest.files,
            ))?;
        }
        for (what, [says, counted]) in &self.counters {
            output.line(&format!("{what}: {says} of {counted}"))?;
        }
        if let Some(kept) = &self.kept {
            output.line(&format!("kept in {kept}"))?;
        }
        for finding in &self.findings {
            let rule = output.paint(Style::Bad, finding.rule);
            output.line(&format!("{rule}: {}", posthaste::cli::output::printable(&finding.evidence)))?;
        }
        let verdict = match self.finding_count {
            0 => output.paint(Style::Good, "everything held"),
            count => output.paint(Style::Bad, &format!("{count} findings")),
        };
        let early = if self.interrupted { ", ended early" } else { "" };
        Ok(output.line(&format!("{verdict} in {} s (seed {}{early})", self.seconds, self.seed))?)
    }
}
