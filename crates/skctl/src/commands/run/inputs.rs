//! The input of a run: the trace, edited by the scenario's jq program, the manifests that are laid over it, and the nodes of
//! the scenario's file.
//!
//! Runs of one command with the same input share it. Manifests and programs are copied into the run folder under fixed
//! names, and the stored scenario refers to these copies. So the run can be repeated from its folder even if the original
//! files are gone.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use sk_api::scenario::{Nodes, Scenario};
use sk_replay::plan::{Overlay, Window};
use sk_replay::recorded::{Recorded, RecordedError};
use sk_report::Tables;
use sk_report::fidelity::Recording;
use sk_store::trace::{self, Change, Format, Object, Trace};
use sk_trace::transform::transform;

use crate::cli::{Global, RunArgs};
use crate::confined::program::Confined;
use crate::progress::Bar;
use crate::scenarios::Resolved;
use crate::{text_file, traces};

/// What the manifests and the program are called in a run's folder.
const OVERLAY: &str = "overlay.yaml";
const TRANSFORM: &str = "transform.jq";
const NODES: &str = "nodes.yaml";

/// The inputs of a run.
pub(super) struct Inputs {
    key: InputKey,
    pub(super) trace: Trace,
    pub(super) overlay: Overlay,
    /// The nodes of the scenario's file.
    pub(super) nodes: Vec<Value>,
    /// What goes into the run's folder, by name.
    pub(super) files: Vec<(&'static str, Vec<u8>)>,
}

impl Inputs {
    /// Does the trace have observations?
    pub(super) fn is_recorded(&self) -> Result<bool> {
        Ok(self.trace.observations()?.next().transpose()?.is_some())
    }

    /// The recording in a window; nothing if the trace has no observations, or too many to compare.
    pub(super) fn recording(&self, window: Window) -> Result<Option<Recording>> {
        if !self.is_recorded()? {
            return Ok(None);
        }
        match Recorded::of(&self.trace, window, env!("CARGO_PKG_VERSION")) {
            Ok(Recorded { meta, pods, nodes, series, decisions }) => {
                Ok(Some(Recording::of(&Tables { meta, pods, nodes, series, decisions, autoscaler: Vec::new() })?))
            }
            Err(RecordedError::NoObservations(_) | RecordedError::TooManyPods(_)) => Ok(None),
            Err(error @ RecordedError::Trace(_)) => Err(error.into()),
        }
    }
}

/// Identifies inputs: runs with the same key share them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InputKey {
    pub(super) trace: String,
    transform: Option<PathBuf>,
    overlay: Vec<String>,
    nodes: Option<PathBuf>,
}

impl InputKey {
    /// By a scenario and what was typed. Paths in a scenario are relative to its file.
    pub(super) fn new(args: &RunArgs, resolved: &Resolved, scenario: &Scenario) -> Result<Self> {
        let beside = |path: &String| if path == "-" { path.into() } else { resolved.folder.join(path) };
        let written = scenario.trace.overlay.iter().map(|path| beside(path).display().to_string());
        let overlay: Vec<String> = written.chain(args.request.overlay.iter().cloned()).collect();
        let from = args.request.trace.clone().or_else(|| scenario.trace.from.clone());
        let trace = from.unwrap_or_else(|| resolved.trace.clone());
        if overlay.iter().chain([&trace]).filter(|path| *path == "-").count() > 1 {
            bail!("standard input can be read once: either the trace or one overlay is `-`");
        }
        let nodes = match &scenario.cluster.nodes {
            Nodes::File(path) => Some(beside(path)),
            Nodes::Groups | Nodes::Recorded => None,
        };
        Ok(Self { trace, transform: scenario.trace.transform.as_ref().map(beside), overlay, nodes })
    }
}

/// The inputs of a command's runs, each read once.
#[derive(Default)]
pub(super) struct InputCache(Vec<Inputs>);

impl InputCache {
    /// The number of these inputs, read if needed.
    pub(super) fn find_or_read(&mut self, key: InputKey, global: &Global) -> Result<usize> {
        if let Some(known) = self.0.iter().position(|inputs| inputs.key == key) {
            return Ok(known);
        }
        self.0.push(read(key, global)?);
        Ok(self.0.len() - 1)
    }

    pub(super) fn get(&self, number: usize) -> &Inputs {
        &self.0[number]
    }
}

fn read(key: InputKey, global: &Global) -> Result<Inputs> {
    let mut files = Vec::new();
    let mut trace = traces::open(&key.trace, global)?;
    if let Some(path) = &key.transform {
        let program = text_file::read("jq program", path)?;
        trace = transformed(&trace, &program, path, global)?;
        files.push((TRANSFORM, program.into_bytes()));
    }
    let mut overlay = Overlay::new(objects(&key.overlay, global)?)?;
    overlay.look_at(&trace)?;
    if !overlay.is_empty() {
        let objects: Vec<_> = overlay.objects().collect();
        files.push((OVERLAY, serde_saphyr::to_string_multiple(&objects)?.into_bytes()));
    }
    let mut nodes = Vec::new();
    if let Some(path) = &key.nodes {
        nodes = read_nodes(path, global)?;
        files.push((NODES, serde_saphyr::to_string_multiple(&nodes)?.into_bytes()));
    }
    Ok(Inputs { key, trace, overlay, nodes, files })
}

/// The nodes of a file, as `kubectl get nodes -o yaml` prints them.
fn read_nodes(path: &Path, global: &Global) -> Result<Vec<Value>> {
    let name = path.display().to_string();
    let is_node = |object: &Object| object.reference().gvk.kind == "Node" && object.reference().gvk.group.is_empty();
    let objects = objects(std::slice::from_ref(&name), global).context("cluster.nodes")?;
    if let Some(other) = objects.iter().find(|object| !is_node(object)) {
        bail!("cluster.nodes: {name} holds {}; it should hold nodes only", other.reference());
    }
    if objects.is_empty() {
        bail!("cluster.nodes: there is no node in {name}");
    }
    Ok(objects.into_iter().map(Object::into_value).collect())
}

/// The trace as the program makes it, in a file that goes with it.
fn transformed(trace: &Trace, program: &str, path: &Path, global: &Global) -> Result<Trace> {
    let _bar = Bar::of_unknown_length(format!("transforming {}", trace.name()), global.quiet);
    let named = || path.display().to_string();
    let program = Confined::compile(program).with_context(named)?;
    let file = tempfile::NamedTempFile::new().context("cannot make a temporary file for the transformed trace")?;
    let out = std::io::BufWriter::new(file);
    let written = transform(trace, &program, Format::Native, out).with_context(named)?;
    let file = written.out.into_inner().context("cannot write the transformed trace; is there disk space?")?;
    Ok(trace::open_temporary(trace.name(), file.into_temp_path())?)
}

/// The objects of manifests, in order.
fn objects(paths: &[String], global: &Global) -> Result<Vec<Object>> {
    let mut objects = Vec::new();
    for path in paths {
        let manifests = traces::open(path, global)?;
        if manifests.format() != Format::Manifests {
            bail!("{path} is a trace; only plain manifests can be laid over one (`helm template` prints them)");
        }
        for record in manifests.records()? {
            if let Change::Apply(object) = record?.change {
                objects.push(object);
            }
        }
    }
    Ok(objects)
}

/// The scenario names what is in the run's own folder.
pub(super) fn name_files(scenario: &mut Scenario, inputs: &Inputs) {
    let has = |name: &str| inputs.files.iter().any(|(file, _)| *file == name);
    scenario.trace.overlay = if has(OVERLAY) { vec![OVERLAY.to_owned()] } else { Vec::new() };
    scenario.trace.transform = has(TRANSFORM).then(|| TRANSFORM.to_owned());
    if has(NODES) {
        scenario.cluster.nodes = Nodes::File(NODES.to_owned());
    }
}
