//! Manifests of the tracer and the simulator, from the flags.
//!
//! The crates sk-tracer and sk-ctrl create the manifests; this module chooses their options and knows where both
//! servers are.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::Api;
use serde_json::Value;
use sk_api::simulation::{crds as definitions, names};
use sk_api::tracer::Config;
use sk_core::Gvk;
use sk_ctrl::install::policy::is_policy;
use sk_ctrl::install::{Kinds, Options, mark};
use sk_tracer::install;

use crate::cli::{Global, Resource, SimArgs, TracerArgs, Verbosity};
use crate::cluster::service::Service;
use crate::cluster::{Cluster, words};
use crate::{output, text_file};

/// The default tracer configuration.
const TRACKED: &str = include_str!("tracked.yaml");

/// The label of a namespace by which the API server refuses pods.
const POD_SECURITY: &str = "pod-security.kubernetes.io/enforce";
/// The only standard under which a pod may read its node's disk; so it is too where a namespace has none.
const PRIVILEGED: &str = "privileged";

/// The tracer, as its installation makes it.
pub(crate) const TRACER: Service = Service {
    what: "tracer",
    part: "tracer",
    selector: "app.kubernetes.io/name=sk-tracer",
    server_name: sk_tracer::tls::SERVER_NAME,
    port: install::PORT,
    account: install::EXPORTER,
    audience: sk_tracer::auth::AUDIENCE,
    authority: (install::CERTIFICATE, install::CERTIFICATE_KEY),
};

/// The controller, as its installation makes it.
pub(crate) const CONTROLLER: Service = Service {
    what: "controller",
    part: "sim",
    selector: "simkube.io/component=controller",
    server_name: "sk-ctrl.{namespace}.svc",
    port: sk_ctrl::install::PORT,
    account: names::RECORD_READER,
    audience: names::CONTROLLER_AUDIENCE,
    authority: (names::CONTROLLER_CA, names::CA_KEY),
};

/// The tracer's manifests, without a cluster: what kinds are called in the plural is guessed, as Kubernetes does it.
pub(crate) fn tracer(args: &TracerArgs, global: &Global) -> Result<Vec<Value>> {
    let config = tracer_config(args.config.as_deref(), global)?;
    Ok(tracer_manifests(&config, args, global.home(), &[]))
}

/// The tracer's manifests for a cluster, which knows what its kinds are called in the plural.
pub(crate) async fn tracer_for(cluster: &Cluster, args: &TracerArgs, global: &Global) -> Result<Vec<Value>> {
    let config = tracer_config(args.config.as_deref(), global)?;
    let names = install::names(&cluster.client, &config).await;
    let names = names.with_context(|| format!("cannot ask {cluster} about the kinds to record"))?;
    Ok(tracer_manifests(&config, args, &cluster.namespace, &names))
}

/// The tracer's manifests with the usual configuration, in a namespace: for their names.
pub(crate) fn tracer_in(namespace: &str) -> Result<Vec<Value>> {
    Ok(tracer_manifests(&usual()?, &TracerArgs::default(), namespace, &[]))
}

fn tracer_manifests(
    config: &Config,
    args: &TracerArgs,
    namespace: &str,
    names: &[(Gvk, install::Readable)],
) -> Vec<Value> {
    let usual = install::Options::default();
    let image = image(args.image.as_ref(), args.image_prefix.as_ref(), &usual.image);
    let options = install::Options { namespace: namespace.to_owned(), image, ..usual };
    install::manifests(config, &options, names)
}

/// The tracer's configuration: a file's, or the usual one, which is shown to who wants to know.
pub(crate) fn tracer_config(file: Option<&Path>, global: &Global) -> Result<Config> {
    match file {
        Some(path) => Ok(Config::parse(&path.display().to_string(), &text_file::read("configuration", path)?)?),
        None => {
            if global.verbosity >= Verbosity::Info {
                output::say(global, &format!("no -c, so this is recorded:\n{TRACKED}"));
            }
            usual()
        }
    }
}

fn usual() -> Result<Config> {
    Config::parse("the usual configuration", TRACKED).context("please report this")
}

/// The simulator's manifests, without a cluster: the namespace is made if it is not there.
pub(crate) fn sim(args: &SimArgs, global: &Global) -> Vec<Value> {
    sim_in(args, global.home())
}

/// The simulator's manifests for a cluster, where the namespace may be somebody else's and is then left as it is.
pub(crate) async fn sim_for(cluster: &Cluster, args: &SimArgs, global: &Global) -> Result<Vec<Value>> {
    let cannot_ask = |error: kube::Error| {
        let why = words(&error);
        anyhow!("cannot ask {cluster} whose namespace {} is: {why}", cluster.namespace)
    };
    let own_namespace = mark::owns(&cluster.client, &cluster.namespace).await.map_err(cannot_ask)?;
    if args.local_traces && !own_namespace {
        let standard = pod_security(cluster).await.map_err(cannot_ask)?;
        if let Some(standard) = standard.filter(|standard| standard != PRIVILEGED) {
            output::say(global, &no_local_traces(cluster, &standard));
        }
    }
    Ok(sim_manifests(&Options { own_namespace, ..options(args, &cluster.namespace) }))
}

/// The Pod Security Standard that the installation's namespace has, if it has one.
async fn pod_security(cluster: &Cluster) -> Result<Option<String>, kube::Error> {
    let namespaces: Api<Namespace> = Api::all(cluster.client.clone());
    let found = namespaces.get_metadata_opt(&cluster.namespace).await?;
    Ok(found.and_then(|found| found.metadata.labels?.remove(POD_SECURITY)))
}

/// Said in time, because otherwise every driver's pod would be refused, one by one, by a label that nobody thinks of.
fn no_local_traces(cluster: &Cluster, standard: &str) -> String {
    let Cluster { namespace, context, .. } = cluster;
    format!(
        "namespace {namespace} was there before and is left as it is: its Pod Security Standard, {standard}, refuses \
         drivers that read traces from their nodes' disks. To let them:\n  kubectl --context {context} label --overwrite \
         namespace {namespace} {POD_SECURITY}={PRIVILEGED}"
    )
}

/// The simulator's manifests in a namespace.
pub(crate) fn sim_in(args: &SimArgs, namespace: &str) -> Vec<Value> {
    sim_manifests(&options(args, namespace))
}

/// Stages come last: without KWOK everything else can still be made.
fn sim_manifests(options: &Options) -> Vec<Value> {
    sk_ctrl::install::manifests(options).into_iter().chain(sk_driver::stages()).collect()
}

fn options(args: &SimArgs, namespace: &str) -> Options {
    let usual = Options::default();
    Options {
        namespace: namespace.to_owned(),
        image: image(args.ctrl_image.as_ref(), args.image_prefix.as_ref(), &usual.image),
        driver_image: image(args.driver_image.as_ref(), args.image_prefix.as_ref(), &usual.driver_image),
        allowed_images: args.allowed_images.clone(),
        allow_hooks: args.allow_hooks,
        local_traces: args.local_traces,
        any_namespace: args.any_namespace,
        metrics: args.metrics,
        cert_manager: args.cert_manager,
        more_kinds: kinds(&args.also),
        more_cluster_kinds: kinds(&args.also_cluster),
        ..usual
    }
}

/// The image that was named, or the usual one, wherever images are.
fn image(named: Option<&String>, prefix: Option<&String>, usual: &str) -> String {
    match (named, prefix) {
        (Some(named), _) => named.clone(),
        (None, Some(prefix)) => format!("{prefix}/{usual}"),
        (None, None) => usual.to_owned(),
    }
}

/// Resources by their groups.
fn kinds(resources: &[Resource]) -> Vec<Kinds> {
    let mut groups: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for Resource { plural, group } in resources {
        groups.entry(group).or_default().insert(plural);
    }
    let kinds = |(group, plurals): (&str, BTreeSet<&str>)| Kinds {
        group: group.to_owned(),
        resources: plurals.into_iter().map(str::to_owned).collect(),
    };
    groups.into_iter().map(kinds).collect()
}

/// The kinds alone.
pub(crate) fn crds() -> Result<Vec<Value>> {
    definitions().iter().map(|crd| Ok(serde_json::to_value(crd)?)).collect()
}

/// Is it something that everything else can do without where the cluster does not know its kind? KWOK brings Stages, and
/// Kubernetes policies since 1.30; the doctor says what is missing.
pub(crate) fn is_dispensable(object: &Value) -> bool {
    is_stage(object) || is_policy(object)
}

/// Is it something that tells KWOK what to do? Those need KWOK's own kinds.
pub(crate) fn is_stage(object: &Value) -> bool {
    object["kind"] == "Stage"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_that_are_not_named_come_from_where_images_are() {
        let prefix = Some("registry.example.com/simkube".to_owned());
        let args =
            SimArgs { image_prefix: prefix.clone(), driver_image: Some("mine:1".to_owned()), ..SimArgs::default() };
        let options = options(&args, "simkube");
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(options.image, format!("registry.example.com/simkube/sk-ctrl:{version}"));
        assert_eq!(options.driver_image, "mine:1");
        let tracer = TracerArgs { image_prefix: prefix, ..TracerArgs::default() };
        let text = serde_json::to_string(&tracer_manifests(&usual().unwrap(), &tracer, "simkube", &[])).unwrap();
        assert!(text.contains(&format!("registry.example.com/simkube/sk-tracer:{version}")), "{text}");
    }
}
