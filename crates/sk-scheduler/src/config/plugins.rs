//! Plugins enabled and disabled at every extension point, and their weights (`apis/config/v1/default_plugins.go`,
//! `mergePluginSet`; `framework/runtime/framework.go`, `expandMultiPointPlugins`).

use super::reader::{At, Read};
use crate::framework::Profile;
use crate::framework::extension_points::{DEFAULTS, Enabled, POINTS};
use crate::framework::plugin::{PluginId, PluginSet};

/// The largest weight. Eleven plugins at 100 points each stay below 2³¹ then, which is what a score is kept in.
const MAX_WEIGHT: i64 = 1_000_000;

/// What is on and off at one extension point.
#[derive(Clone, Debug, Default)]
struct Point {
    enabled: Vec<Enabled>,
    disabled: PluginSet,
    all_disabled: bool,
}

use PluginId::{
    InterPodAffinity, NodePorts, NodeResourcesFit, PodTopologySpread, PrioritySort, TaintToleration, VolumeBinding,
};

/// Takes the plugins of a profile over.
pub(super) fn read(at: Option<&At<'_>>, profile: &mut Profile, ignored: &mut Vec<String>) -> Read<()> {
    let Some(at) = at else { return Ok(()) };
    let mut known: Vec<&str> = POINTS.iter().map(|(name, _)| *name).collect();
    known.push("multiPoint");
    at.only(&known)?;
    let custom = point(at.get("multiPoint")?.as_ref(), None, ignored)?;
    let multi_point = merge(&custom);
    let mut points = Vec::new();
    for (name, implementing) in POINTS {
        let written = point(at.get(name)?.as_ref(), Some((name, implementing)), ignored)?;
        points.push((name, expand(&multi_point, &written, implementing), written));
    }
    let plugins = |name: &str| -> Vec<PluginId> {
        let found = points.iter().find(|(point, _, _)| *point == name);
        found.map(|(_, plugins, _)| plugins.clone()).unwrap_or_default()
    };
    if plugins("queueSort") != [PrioritySort] {
        return at.wrong("exactly one queueSort plugin is needed: enable PrioritySort");
    }
    if plugins("bind").is_empty() {
        return at.wrong("at least one bind plugin is needed: enable DefaultBinder");
    }
    (profile.pre_enqueue, profile.post_filters) = (plugins("preEnqueue"), plugins("postFilter"));
    (profile.pre_filters, profile.filters) = (plugins("preFilter"), plugins("filter"));
    let of_score = points.iter().find(|(name, ..)| *name == "score").map(|(_, _, written)| written.enabled.as_slice());
    let weight = |plugin: &PluginId| {
        let own = of_score.into_iter().flatten().chain(&multi_point).find(|(known, _)| known == plugin);
        own.map_or(1, |(_, weight)| if *weight == 0 { 1 } else { *weight })
    };
    profile.scores = plugins("score").iter().map(|plugin| (*plugin, weight(plugin))).collect();
    check(at, profile, &plugins("preScore"))
}

/// Refuses what kube-scheduler starts with and then fails at with every pod.
fn check(at: &At<'_>, profile: &Profile, pre_scores: &[PluginId]) -> Read<()> {
    const NEED_PRE_FILTER: [PluginId; 5] =
        [NodePorts, NodeResourcesFit, VolumeBinding, PodTopologySpread, InterPodAffinity];
    const NEED_PRE_SCORE: [PluginId; 3] = [TaintToleration, PodTopologySpread, InterPodAffinity];
    for plugin in NEED_PRE_FILTER {
        if profile.filters.contains(&plugin) && !profile.pre_filters.contains(&plugin) {
            let name = plugin.name();
            return at
                .wrong(format!("{name} is on at filter but off at preFilter, without which it fails: turn both off"));
        }
    }
    for plugin in NEED_PRE_SCORE {
        if profile.scores.iter().any(|(known, _)| *known == plugin) && !pre_scores.contains(&plugin) {
            let name = plugin.name();
            return at
                .wrong(format!("{name} is on at score but off at preScore, without which it fails: turn both off"));
        }
    }
    Ok(())
}

/// What is written for one point; `None` for `multiPoint`, which takes every plugin.
fn point(at: Option<&At<'_>>, of: Option<(&str, &[PluginId])>, ignored: &mut Vec<String>) -> Read<Point> {
    let mut read = Point::default();
    let Some(at) = at else { return Ok(read) };
    at.only(&["enabled", "disabled"])?;
    for one in at.list("enabled")? {
        one.only(&["name", "weight"])?;
        let Some(name) = one.get("name")? else { return one.wrong("`name` is missing: name a plugin") };
        let text = name.text()?;
        let Some(plugin) = PluginId::parse(text) else {
            return name
                .wrong(format!("the plugin `{text}` is not built in: remove it, or simulate without what it does"));
        };
        if let Some((point, implementing)) = of
            && !implementing.contains(&plugin)
        {
            return name.wrong(format!("{text} does nothing at {point}: remove it there"));
        }
        if read.enabled.iter().any(|(known, _)| *known == plugin) {
            return name.wrong(format!("{text} stands here twice: keep one of them"));
        }
        read.enabled.push((plugin, one.number("weight", 0, 0..=MAX_WEIGHT)?));
    }
    for one in at.list("disabled")? {
        one.only(&["name", "weight"])?;
        match one.text_of("name")?.unwrap_or_default() {
            "*" => read.all_disabled = true,
            name => match PluginId::parse(name) {
                Some(plugin) => read.disabled.insert(plugin),
                None => ignored.push(format!("{}: `{name}` is not built in, so it is off anyway", one.path)),
            },
        }
    }
    Ok(read)
}

/// `mergePluginSet` of the default `multiPoint` with a user's.
fn merge(custom: &Point) -> Vec<Enabled> {
    let written = |plugin: PluginId| custom.enabled.iter().find(|(known, _)| *known == plugin).copied();
    let mut merged = Vec::new();
    if !custom.all_disabled {
        let kept = DEFAULTS.iter().filter(|(plugin, _)| !custom.disabled.contains(*plugin));
        merged.extend(kept.map(|default| written(default.0).unwrap_or(*default)));
    }
    let added = custom.enabled.iter().filter(|(plugin, _)| !merged.iter().any(|(known, _)| known == plugin));
    let added: Vec<Enabled> = added.copied().collect();
    merged.extend(added);
    merged
}

/// `expandMultiPointPlugins`: those written for the point that `multiPoint` has too, then the rest of `multiPoint`, then
/// the rest of those written for the point.
fn expand(multi_point: &[Enabled], written: &Point, implementing: &[PluginId]) -> Vec<PluginId> {
    let own: Vec<PluginId> = written.enabled.iter().map(|(plugin, _)| *plugin).collect();
    if written.all_disabled {
        return own;
    }
    let all = multi_point.iter().map(|(plugin, _)| *plugin);
    let general: Vec<PluginId> =
        all.filter(|plugin| implementing.contains(plugin) && !written.disabled.contains(*plugin)).collect();
    let (overriding, added): (Vec<_>, Vec<_>) = own.iter().partition(|plugin| general.contains(plugin));
    let rest = general.iter().filter(|plugin| !own.contains(plugin));
    overriding.into_iter().chain(rest.copied()).chain(added).collect()
}
