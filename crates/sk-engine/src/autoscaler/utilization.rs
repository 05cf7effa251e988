//! A node's utilization (`simulator/utilization/info.go`): the larger of the requested shares of CPU and memory; for a
//! node with GPUs, the share of its GPUs alone.

use std::fmt;

use sk_core::SmolStr;
use sk_scheduler::PodId;

use super::flags::Autoscaler;
use super::rules::Rule;
use super::view::{NodeView, PodView, View};
use super::{drain, price};

/// What is asked for of a node, in shares of what it has.
#[derive(Clone, Debug, PartialEq)]
pub struct Utilization {
    /// Of CPU; 0 for nodes with GPUs, where it does not count.
    pub cpu: f64,
    /// Of memory, likewise.
    pub memory: f64,
    /// Of the GPUs; 0 without any.
    pub gpu: f64,
    /// The resource that counts.
    pub resource: SmolStr,
    /// Its share.
    pub highest: f64,
}

impl Utilization {
    pub(super) fn of(node: &NodeView, view: &View, flags: &Autoscaler) -> Self {
        let shares = Shares { node, view, flags };
        match price::gpu_of(view.what_if.cluster.node(node.id)) {
            Some(resource) => {
                let gpu = shares.of_gpus(resource);
                Self { cpu: 0.0, memory: 0.0, gpu, resource: resource.clone(), highest: gpu }
            }
            None => {
                let (cpu, memory) = shares.of_cpu_and_memory();
                let is_cpu = cpu > memory || !flags.follows(Rule::LargerShareCounts);
                let (resource, highest) = if is_cpu { ("cpu", cpu) } else { ("memory", memory) };
                Self { cpu, memory, gpu: 0.0, resource: resource.into(), highest }
            }
        }
    }

    /// Why the node is used too much to go.
    pub(super) fn is_too_high(&self, flags: &Autoscaler) -> Option<String> {
        let has_gpus = !["cpu", "memory"].contains(&self.resource.as_str());
        let threshold = match has_gpus {
            true => flags.scale_down_gpu_utilization_threshold_milli,
            false => flags.scale_down_utilization_threshold_milli,
        };
        (self.highest > threshold as f64 / 1000.0).then(|| {
            let (name, percent) = (&self.resource, significant(self.highest * 100.0));
            format!("{name} requested ({percent}% of allocatable) is above the scale-down utilization threshold")
        })
    }
}

impl fmt::Display for Utilization {
    /// As cluster-autoscaler writes it into events. The fourth is dynamic resources, which are not modelled.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [cpu, memory, gpu, highest] = [self.cpu, self.memory, self.gpu, self.highest].map(shortest);
        write!(f, "{{{cpu} {memory} {gpu} 0 {} {highest}}}", self.resource)
    }
}

/// What the shares of a node are made of.
struct Shares<'a> {
    node: &'a NodeView,
    view: &'a View,
    flags: &'a Autoscaler,
}

impl Shares<'_> {
    fn of_gpus(&self, gpu: &SmolStr) -> f64 {
        let cluster = &self.view.what_if.cluster;
        let asked = |pod: PodId| {
            let scalars = &cluster.class(cluster.pod(pod).class).shape.requests.scalars;
            scalars.iter().find(|(name, _)| name == gpu).map_or(0, |(_, amount)| *amount)
        };
        let left_out: i64 = self.left_out().map(|pod| asked(pod.id)).sum();
        let used: i64 = cluster.pods_on(self.node.id).iter().map(|pod| asked(*pod)).sum();
        let all = cluster.node(self.node.id).scalars.get(gpu).copied().unwrap_or(0);
        part(used - left_out, all - left_out)
    }

    fn of_cpu_and_memory(&self) -> (f64, f64) {
        let cluster = &self.view.what_if.cluster;
        let (mut cpu, mut memory) = (0_i64, 0_i64);
        for pod in cluster.pods_on(self.node.id) {
            let requests = &cluster.class(cluster.pod(*pod).class).shape.requests;
            (cpu, memory) = (cpu.saturating_add(requests.cpu), memory.saturating_add(requests.memory));
        }
        let (mut all_cpu, mut all_memory) = (self.node.allocatable.cpu_milli, self.node.allocatable.memory);
        for pod in self.left_out().filter(|pod| !pod.expendable) {
            cpu -= pod.requests.cpu_milli;
            memory -= pod.requests.memory;
            all_cpu -= pod.requests.cpu_milli;
            all_memory -= pod.requests.memory;
        }
        (part(cpu, all_cpu), part(memory, all_memory))
    }

    /// The pods that do not count, on neither side.
    fn left_out(&self) -> impl Iterator<Item = &PodView> {
        self.node.pods().filter(|pod| {
            (self.flags.ignore_daemonsets_utilization && drain::is_daemon(&pod.object))
                || (self.flags.ignore_mirror_pods_utilization && drain::is_mirror(&pod.object))
        })
    }
}

fn part(part: i64, whole: i64) -> f64 {
    if whole <= 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// As Go's `%.6g` prints it.
fn significant(number: f64) -> String {
    let digits = if number.abs() < 1.0 { 6 } else { 5_usize.saturating_sub(number.abs().log10() as usize) };
    let text = format!("{number:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// As Go's `%v` prints it: the fewest digits that say which number it is, with an exponent below 0.0001.
fn shortest(number: f64) -> String {
    if number == 0.0 || number.abs() >= 1e-4 {
        return number.to_string();
    }
    let text = format!("{number:e}");
    match text.split_once("e-") {
        Some((digits, exponent)) => format!("{digits}e-{exponent:0>2}"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_printed_as_cluster_autoscaler_prints_them() {
        for (number, text) in [(62.5, "62.5"), (100.0, "100"), (142.5, "142.5"), (55.0, "55"), (97.5, "97.5")] {
            assert_eq!(significant(number), text);
        }
        assert_eq!(significant(54.998_779_296_875), "54.9988");
        let memory = part(64 << 20, (16 << 30) - (64 << 20));
        let used = Utilization { cpu: 0.4375, memory, gpu: 0.0, resource: "cpu".into(), highest: 0.4375 };
        assert_eq!(used.to_string(), "{0.4375 0.00392156862745098 0 0 cpu 0.4375}");
        assert_eq!(shortest(0.000_025), "2.5e-05");
    }
}
