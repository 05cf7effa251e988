//! The plain way: for every pod a loop over all nodes, columns of numbers, the three rules that decide most placements
//! (fit, least allocated, balanced), and nothing else: no API, no controllers, no record.

use std::collections::VecDeque;

use crate::case::Case;

const CPU: i64 = 32_000;
const MEMORY: i64 = 128 << 30;
const PODS: i64 = 110;

#[derive(Default)]
struct Nodes {
    cpu: Vec<i64>,
    memory: Vec<i64>,
    pods: Vec<i64>,
}

pub(crate) fn run(case: &Case) {
    let count = case.nodes as usize;
    let mut nodes = Nodes { cpu: vec![0; count], memory: vec![0; count], pods: vec![0; count] };
    let mut alive: VecDeque<(usize, i64, i64)> = VecDeque::new();
    let mut placed = 0_u64;
    for number in 0..case.pods {
        let (cpu, memory) = size(case, number);
        if alive.len() as u64 >= case.live
            && let Some((node, cpu, memory)) = alive.pop_front()
        {
            nodes.cpu[node] -= cpu;
            nodes.memory[node] -= memory;
            nodes.pods[node] -= 1;
        }
        if let Some(node) = best(&nodes, cpu, memory) {
            nodes.cpu[node] += cpu;
            nodes.memory[node] += memory;
            nodes.pods[node] += 1;
            alive.push_back((node, cpu, memory));
            placed += 1;
        }
    }
    assert_eq!(std::hint::black_box(placed), case.pods, "every pod fits");
}

/// The same sizes as the trace has.
pub(crate) fn size(case: &Case, number: u64) -> (i64, i64) {
    let (cpu, memory_mib) = case.size(number.checked_div(case.per_deployment).unwrap_or(number));
    (cpu, memory_mib << 20)
}

fn best(nodes: &Nodes, cpu: i64, memory: i64) -> Option<usize> {
    let mut best = None;
    for node in 0..nodes.cpu.len() {
        let (used_cpu, used_memory) = (nodes.cpu[node] + cpu, nodes.memory[node] + memory);
        if used_cpu > CPU || used_memory > MEMORY || nodes.pods[node] >= PODS {
            continue;
        }
        let least = ((CPU - used_cpu) * 100 / CPU + (MEMORY - used_memory) * 100 / MEMORY) / 2;
        let balance = |cpu: i64, memory: i64| {
            let deviation = (cpu as f64 / CPU as f64 - memory as f64 / MEMORY as f64).abs() / 2.0;
            ((1.0 - deviation) * 100.0) as i64
        };
        let balanced = 50 + (50 + balance(used_cpu, used_memory) - balance(nodes.cpu[node], nodes.memory[node])) / 2;
        let score = least + balanced;
        if best.is_none_or(|(known, _)| score > known) {
            best = Some((score, node));
        }
    }
    best.map(|(_, node)| node)
}
