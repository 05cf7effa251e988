//! A scenario's KubeSchedulerConfiguration as our scheduler's profiles.

use serde_json::Value;
use sk_scheduler::next::Profile;

/// The profiles of a configuration; `None` if we cannot read it yet.
pub fn of(configuration: &Value) -> Option<Vec<Profile>> {
    configuration.as_object().is_some_and(serde_json::Map::is_empty).then(|| vec![Profile::default()])
}
