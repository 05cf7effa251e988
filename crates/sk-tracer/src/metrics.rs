//! The metrics of the tracer at `/metrics`, in Prometheus text format.
//!
//! Counters are incremented where events happen; gauges (lag, queue, log) are set by the owner of the state. Labels are
//! kinds and fixed words, never object names, so their number is bounded by the configuration.

use std::sync::atomic::{AtomicI64, AtomicU64};

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use sk_core::Gvk;

/// Export times from 10 ms, a small window, to 80 s, a month of a busy cluster: 14 doublings.
const EXPORT_BUCKETS: (f64, f64, u16) = (0.01, 2.0, 14);

type Labels = [(&'static str, String); 1];
type Seconds = Gauge<f64, AtomicU64>;
type Number = Gauge<i64, AtomicI64>;

#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    events: Family<Labels, Counter>,
    lists: Family<Labels, Counter>,
    reconnects: Family<Labels, Counter>,
    watching: Family<Labels, Number>,
    refused: Family<Labels, Counter>,
    lookups: Family<Labels, Counter>,
    rereads: Family<Labels, Counter>,
    exports: Family<Labels, Counter>,
    shortcomings: Family<Labels, Number>,
    /// Changes that the log has taken.
    pub(crate) facts: Counter,
    /// Gaps that were recorded.
    pub(crate) gaps: Counter,
    /// Rejected updates of pod lives.
    pub(crate) warnings: Counter,
    /// 1 while events are stored.
    pub(crate) recording: Number,
    /// The age of the events that are being stored now.
    pub(crate) lag: Seconds,
    /// Batches that wait for the store.
    pub(crate) queue: Number,
    /// Live objects, links, pods and nodes.
    pub(crate) live: Number,
    /// Bytes of the log on disk.
    pub(crate) log_bytes: Number,
    /// The oldest moment that can be exported.
    pub(crate) oldest: Seconds,
    /// How long exports took.
    pub(crate) export_seconds: Histogram,
    /// How many bytes they had.
    pub(crate) export_bytes: Counter,
    /// Exports made although a watch had not caught up in time.
    pub(crate) export_behind: Counter,
}

impl Default for Metrics {
    fn default() -> Self {
        let (start, factor, length) = EXPORT_BUCKETS;
        let mut metrics = Self {
            registry: Registry::with_prefix("simkube_tracer"),
            events: Family::default(),
            lists: Family::default(),
            reconnects: Family::default(),
            watching: Family::default(),
            refused: Family::default(),
            lookups: Family::default(),
            rereads: Family::default(),
            exports: Family::default(),
            shortcomings: Family::default(),
            facts: Counter::default(),
            gaps: Counter::default(),
            warnings: Counter::default(),
            recording: Gauge::default(),
            lag: Gauge::default(),
            queue: Gauge::default(),
            live: Gauge::default(),
            log_bytes: Gauge::default(),
            oldest: Gauge::default(),
            export_seconds: Histogram::new(exponential_buckets(start, factor, length)),
            export_bytes: Counter::default(),
            export_behind: Counter::default(),
        };
        metrics.register();
        metrics
    }
}

impl Metrics {
    fn register(&mut self) {
        let r = &mut self.registry;
        r.register("events", "Events received, by kind", self.events.clone());
        r.register("lists", "Full lists, by kind", self.lists.clone());
        r.register("reconnects", "Watches that ended with an error, by kind", self.reconnects.clone());
        r.register("watching", "1 while a kind is being watched, 0 while its watch is broken", self.watching.clone());
        r.register("refused_objects", "Objects that could not be read, by kind", self.refused.clone());
        r.register("lookups", "Owners requested from the API server, by result", self.lookups.clone());
        r.register("pod_rereads", "Pods read again for their template, by result", self.rereads.clone());
        r.register("exports", "Exports, by HTTP status", self.exports.clone());
        r.register("shortcomings", "What is unresolved or exceeded a limit, by what", self.shortcomings.clone());
        r.register("facts", "Changes kept in the log", self.facts.clone());
        r.register("gaps", "Gaps in the watches", self.gaps.clone());
        r.register(
            "refused_updates",
            "Updates of pod lives that were rejected as older, or cut",
            self.warnings.clone(),
        );
        r.register("recording", "1 while events are stored, 0 while they are not", self.recording.clone());
        r.register("lag_seconds", "Age of what is being stored now", self.lag.clone());
        r.register("queue_batches", "Batches waiting to be stored", self.queue.clone());
        r.register("live_objects", "Objects, links, pods and nodes in memory", self.live.clone());
        r.register("log_bytes", "Bytes of the log on disk", self.log_bytes.clone());
        r.register("oldest_kept_timestamp_seconds", "The oldest exportable moment", self.oldest.clone());
        r.register("export_seconds", "How long exports took", self.export_seconds.clone());
        r.register("export_bytes", "Bytes of exported traces", self.export_bytes.clone());
        r.register("exports_behind", "Exports made before all watches had caught up", self.export_behind.clone());
    }

    /// An event of this kind was received.
    pub(crate) fn events(&self, kind: &Gvk, count: u64) {
        self.events.get_or_create(&[("kind", kind.to_string())]).inc_by(count);
    }

    /// How many events of all kinds were received.
    pub(crate) fn all_events(&self, kinds: impl Iterator<Item = Gvk>) -> u64 {
        kinds.map(|kind| self.events.get_or_create(&[("kind", kind.to_string())]).get()).sum()
    }

    /// All objects of this kind were listed.
    pub(crate) fn listed(&self, kind: &Gvk) {
        self.lists.get_or_create(&[("kind", kind.to_string())]).inc();
    }

    /// How often all objects of this kind were listed.
    pub(crate) fn lists(&self, kind: &Gvk) -> u64 {
        self.lists.get_or_create(&[("kind", kind.to_string())]).get()
    }

    /// The watch of this kind broke.
    pub(crate) fn reconnect(&self, kind: &Gvk) {
        self.reconnects.get_or_create(&[("kind", kind.to_string())]).inc();
    }

    /// Is this kind being watched?
    pub(crate) fn watching(&self, kind: &Gvk, is_so: bool) {
        self.watching.get_or_create(&[("kind", kind.to_string())]).set(i64::from(is_so));
    }

    /// An object of this kind could not be read.
    pub(crate) fn refused(&self, kind: &Gvk) {
        self.refused.get_or_create(&[("kind", kind.to_string())]).inc();
    }

    /// An owner was looked up: `found`, `absent`, `failed` or `dropped`.
    pub(crate) fn lookup(&self, result: &'static str) {
        self.lookups.get_or_create(&[("result", result.to_owned())]).inc();
    }

    /// A pod was read again: `seen` or `failed`.
    pub(crate) fn reread(&self, result: &'static str) {
        self.rereads.get_or_create(&[("result", result.to_owned())]).inc();
    }

    /// How many lookups had this result.
    pub(crate) fn lookups(&self, result: &'static str) -> u64 {
        self.lookups.get_or_create(&[("result", result.to_owned())]).get()
    }

    /// An export was answered.
    pub(crate) fn exported(&self, status: u16) {
        self.exports.get_or_create(&[("code", status.to_string())]).inc();
    }

    /// Sets how much is unresolved, or exceeded a limit.
    pub(crate) fn shortcoming(&self, what: &'static str, count: u64) {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.shortcomings.get_or_create(&[("what", what.to_owned())]).set(count);
    }

    /// Everything as text.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("writing to a string does not fail");
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_counted_can_be_read() {
        let metrics = Metrics::default();
        metrics.events(&"apps/v1.Deployment".parse().unwrap(), 3);
        metrics.recording.set(1);
        metrics.export_seconds.observe(0.2);
        let text = metrics.text();
        assert!(text.contains("simkube_tracer_events_total{kind=\"apps/v1.Deployment\"} 3\n"), "{text}");
        assert!(text.contains("simkube_tracer_recording 1\n"), "{text}");
        assert!(text.contains("simkube_tracer_export_seconds_count 1\n"), "{text}");
    }
}
