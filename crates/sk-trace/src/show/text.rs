//! The summary as plain text: no colours, at most 80 columns except for long names.

use std::fmt;

use super::{Counts, Summary};

/// How many namespaces are listed; the rest are summed up.
const MAX_LISTED: usize = 12;

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.head(f)?;
        table(f, "kind", self.kinds.iter().map(|(kind, counts)| (kind.to_string(), *counts)))?;
        self.namespaces(f)?;
        self.busy(f)?;
        self.rest(f)
    }
}

impl Summary {
    fn head(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}  {}", self.name, self.format)?;
        if let Some(bytes) = self.bytes {
            write!(f, ", {bytes} bytes")?;
        }
        match &self.span {
            Some(span) => writeln!(f, "\n{} to {}, {}", span.start, span.end, span.end.since(span.start))?,
            None => writeln!(f, "\nempty")?,
        }
        let tracked: Vec<_> = self.tracked.iter().map(ToString::to_string).collect();
        let (events, objects) = (counted(self.events, "event"), counted(self.most_objects, "object"));
        writeln!(f, "{events}, at most {objects} at a time")?;
        writeln!(f, "tracked: {}\n", if tracked.is_empty() { "not said".to_owned() } else { tracked.join(", ") })
    }

    /// The busiest namespaces, then how many others there are.
    fn namespaces(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sorted: Vec<_> = self.namespaces.iter().collect();
        sorted.sort_by_key(|(name, counts)| (std::cmp::Reverse(counts.total()), *name));
        let name = |name: &str| if name.is_empty() { "(no namespace)".to_owned() } else { name.to_owned() };
        table(f, "namespace", sorted.iter().take(MAX_LISTED).map(|(namespace, counts)| (name(namespace), **counts)))?;
        match sorted.len().saturating_sub(MAX_LISTED) {
            0 => Ok(()),
            others => writeln!(f, "and {others} other namespaces\n"),
        }
    }

    fn busy(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let busiest = self.busy.busiest();
        if busiest.is_empty() {
            return Ok(());
        }
        writeln!(f, "{}  each {}", self.busy.chart(), self.busy.width)?;
        for moment in busiest {
            writeln!(f, "{:>8} events from {}", moment.events, moment.start.to_rfc3339_secs())?;
        }
        writeln!(f)
    }

    fn rest(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lives = &self.lives;
        writeln!(f, "lives: {} ended, {} did not, of {} owners", lives.finished, lives.unfinished, lives.owners)?;
        if lives.finished > 0 {
            writeln!(f, "       median {}, p95 {}, longest {}", lives.median, lives.p95, lives.longest)?;
        }
        writeln!(f, "observed: {} pods, {} changes of nodes", self.observed_pods, self.node_events)?;
        match self.gaps.count {
            0 => writeln!(f, "gaps: none")?,
            count => writeln!(f, "gaps: {count}, together {}", self.gaps.total)?,
        }
        for gap in &self.gaps.first {
            writeln!(f, "       {gap}")?;
        }
        match self.overflow {
            0 => Ok(()),
            more => writeln!(f, "{more} names did not fit into memory and are not in the counts by name"),
        }
    }
}

/// `1 event`, `2 events`.
fn counted(count: impl Into<u64>, what: &str) -> String {
    let count = count.into();
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

impl Counts {
    fn total(&self) -> u64 {
        self.initial + self.created + self.changed + self.deleted
    }
}

fn table(f: &mut fmt::Formatter<'_>, what: &str, rows: impl Iterator<Item = (String, Counts)>) -> fmt::Result {
    let rows: Vec<_> = rows.collect();
    let width = rows.iter().map(|(name, _)| name.chars().count()).chain([what.len()]).max().unwrap_or(0);
    writeln!(f, "{what:width$}  at start   created   changed   deleted")?;
    for (name, counts) in rows {
        let Counts { initial, created, changed, deleted } = counts;
        writeln!(f, "{name:width$} {initial:>9} {created:>9} {changed:>9} {deleted:>9}")?;
    }
    writeln!(f)
}
