//! What a soak came to: for people, and for programs.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::field::DoorCount;
use super::ledger::{Finding, Totals};
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
    pub(super) letters: Totals,
    pub(super) deeds: BTreeMap<&'static str, u64>,
    pub(super) kills: usize,
    /// How long the office took to be open again, in milliseconds.
    pub(super) opened_again_ms: Vec<u64>,
    /// What the office says, and what the fleet counted.
    pub(super) counters: BTreeMap<String, [u64; 2]>,
    pub(super) refusals: BTreeMap<String, u64>,
    pub(super) memory: Option<Trend>,
    /// Before anybody came, and after everybody had left.
    pub(super) at_rest: Option<[Sample; 2]>,
    pub(super) most: Option<Sample>,
    pub(super) warnings_in_log: u64,
    /// Of the soak itself.
    pub(super) own_bytes: Option<u64>,
    pub(super) finding_count: u64,
    pub(super) findings: Vec<Finding>,
    /// Where everything lies, if it was kept.
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
        let deeds: Vec<String> =
            self.deeds.iter().map(|(what, count)| format!("{count} {}", what.replace('_', " "))).collect();
        output.line(&format!("\n{}", deeds.join(", ")))?;
        let slowest = self.opened_again_ms.iter().max().copied().unwrap_or_default();
        let Totals { in_books, at_readers, repeated_after_a_loss, loose_lost_in_kills, .. } = self.letters;
        output.line(&format!(
            "{} kills, open again within {}; {in_books} letters and turns in the books, {at_readers} at readers, \
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
