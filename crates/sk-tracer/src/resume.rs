//! Resumes a log that was written with another configuration: ends objects of kinds that are not watched any more.

use sk_core::{ObjectRef, SimTime};
use sk_ingest::Rules;
use sk_store::log::{Deleted, Fact, Log, LogError};

/// Gives up all positions, and ends the objects of kinds that are not recorded any more: no list will ever say that they
/// are gone.
pub(crate) fn begin_anew(log: &mut Log, rules: &Rules, now: SimTime) -> Result<(), LogError> {
    let watched: Vec<_> = log.state().positions().map(|(kind, _, _)| kind.clone()).collect();
    for kind in watched {
        log.append(now, Fact::Lost(kind))?;
    }
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
    use sk_core::{ObjectKey, SmolStr};
    use sk_ingest::PrivacyKey;
    use sk_store::log::{Applied, Options, Watched};

    use super::*;

    fn applied(kind: &str) -> Fact {
        let object = ObjectRef::new(kind.parse().unwrap(), ObjectKey::namespaced("web", "a"));
        Fact::Applied(Applied { object, uid: SmolStr::new("u"), owners: Vec::new(), body: "{}".into() })
    }

    #[test]
    fn a_kind_that_is_not_recorded_any_more_has_no_objects_and_no_kind_goes_on_from_its_position() {
        let folder = tempfile::tempdir().unwrap();
        let (mut log, _) = Log::open(folder.path(), Options::default()).unwrap();
        for kind in ["v1.ConfigMap", "apps/v1.Deployment"] {
            log.append(SimTime::from_secs(1), applied(kind)).unwrap();
        }
        let watched = Watched { kind: "v1.Pod".parse().unwrap(), version: SmolStr::new("7"), seen: None };
        log.append(SimTime::from_secs(1), Fact::Watched(watched)).unwrap();
        assert_eq!(log.state().objects().count(), 2);
        let config = Config::parse("test", "trackedObjects: {apps/v1.Deployment: {}}\n").unwrap();
        let rules = Rules::new(&config, PrivacyKey::new([0; 16]));
        begin_anew(&mut log, &rules, SimTime::from_secs(2)).unwrap();
        let left: Vec<_> = log.state().objects().map(|(object, _)| object.gvk.to_string()).collect();
        assert_eq!(left, ["apps/v1.Deployment"]);
        let lost: Vec<_> = log.state().lost().collect();
        assert_eq!(
            (log.state().positions().count(), lost),
            (0, vec![(&"v1.Pod".parse().unwrap(), SimTime::from_secs(1))])
        );
    }
}
