//! Going on where a log ends: what it knew, told again to a new ledger, and what it holds that nobody watches any more.

use sk_core::{ObjectRef, SimTime};
use sk_ingest::Rules;
use sk_store::log::{Applied, Deleted, Fact, Live, Log, LogError, State};

/// Everything that there was when the log was written last, as facts.
pub(crate) fn known(state: &State) -> impl Iterator<Item = Fact> + '_ {
    let objects = state.objects().map(|(object, live)| {
        let Live { uid, owners, spec_hash, body } = live.clone();
        Fact::Applied(Applied { object: object.clone(), uid, owners, spec_hash, body })
    });
    let links = state.links().cloned().map(Fact::Link);
    let pods = state.pods().map(|pod| Fact::Pod(Box::new(pod)));
    let nodes = state.nodes().map(|(name, node)| Fact::Node(name.clone(), Some(node.clone())));
    objects.chain(links).chain(pods).chain(nodes)
}

/// Ends the objects of kinds that are not recorded any more: no list will ever say that they are gone.
pub(crate) fn end_untracked(log: &mut Log, rules: &Rules, now: SimTime) -> Result<(), LogError> {
    let is_tracked = |object: &ObjectRef| rules.tracked_kinds().any(|kind| *kind == object.gvk);
    let untracked = log.state().objects().filter(|(object, _)| !is_tracked(object));
    let gone: Vec<_> = untracked.map(|(object, live)| (object.clone(), live.uid.clone())).collect();
    for (object, uid) in gone {
        log.append(now, Fact::Deleted(Deleted { object, uid }))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use sk_api::tracer::Config;
    use sk_core::{ObjectKey, SmolStr, StableHash};
    use sk_ingest::PrivacyKey;
    use sk_store::log::Options;

    use super::*;

    fn applied(kind: &str) -> Fact {
        let object = ObjectRef::new(kind.parse().unwrap(), ObjectKey::namespaced("web", "a"));
        let spec_hash = StableHash::of(&serde_json::Value::Null);
        Fact::Applied(Applied { object, uid: SmolStr::new("u"), owners: Vec::new(), spec_hash, body: "{}".into() })
    }

    #[test]
    fn a_kind_that_is_not_recorded_any_more_has_no_objects_any_more() {
        let folder = tempfile::tempdir().unwrap();
        let (mut log, _) = Log::open(folder.path(), Options::default()).unwrap();
        for kind in ["v1.ConfigMap", "apps/v1.Deployment"] {
            log.append(SimTime::from_secs(1), applied(kind)).unwrap();
        }
        assert_eq!(known(log.state()).count(), 2);
        let config = Config::parse("test", "trackedObjects: {apps/v1.Deployment: {}}\n").unwrap();
        let rules = Rules::new(&config, PrivacyKey::new([0; 16]));
        end_untracked(&mut log, &rules, SimTime::from_secs(2)).unwrap();
        let left: Vec<_> = log.state().objects().map(|(object, _)| object.gvk.to_string()).collect();
        assert_eq!(left, ["apps/v1.Deployment"]);
    }
}
