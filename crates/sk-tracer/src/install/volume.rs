//! The PersistentVolumeClaim of the log, with the arithmetic of its size.

use serde_json::{Value, json};
use sk_api::tracer::Config;

use super::{NAME, Options, metadata};

/// Traces that are being made stand beside the log, at most two at a time; the whole history is larger as a v2 trace than in
/// the log, but nobody asks for all of it at once.
const SPOOL_PERCENT: u64 = 20;
/// The log is looked over once a second, and a new segment begins with the state: that of 200,000 objects of 2.4 KB is 480 MB
/// before it is packed. The rest is room for certificate and keys.
const SLACK_BYTES: u64 = 512 << 20;

const MIB: u64 = 1 << 20;

/// How much disk a tracer needs, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizing {
    /// All of it.
    pub bytes: u64,
    /// The sum in words.
    pub arithmetic: String,
}

/// How much disk a tracer with this configuration needs.
pub fn sizing(config: &Config) -> Sizing {
    let log = u64::try_from(config.retention.bytes.value()).unwrap_or(u64::MAX / 2);
    let spool = log / 100 * SPOOL_PERCENT;
    let bytes = log.saturating_add(spool).saturating_add(SLACK_BYTES).div_ceil(MIB).saturating_mul(MIB);
    let mib = |bytes: u64| bytes.div_ceil(MIB);
    let arithmetic = format!(
        "{} MiB retention.bytes + {} MiB ({SPOOL_PERCENT}%) for exports being made + {} MiB for segments not yet deleted = {} MiB",
        mib(log),
        mib(spool),
        mib(SLACK_BYTES),
        mib(bytes),
    );
    Sizing { bytes, arithmetic }
}

pub(super) fn claim(config: &Config, options: &Options) -> Value {
    let sizing = sizing(config);
    let mut metadata = metadata(options, NAME);
    metadata["annotations"] = json!({"simkube.io/size": sizing.arithmetic});
    let mut spec = json!({
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": format!("{}Mi", sizing.bytes / MIB)}},
    });
    if let Some(class) = &options.storage_class {
        spec["storageClassName"] = json!(class);
    }
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_volume_has_room_for_what_is_kept_and_what_is_made_of_it() {
        let text = "trackedObjects: {apps/v1.Deployment: {}}\nretention: {bytes: 1000Mi}\n";
        let sizing = sizing(&Config::parse("test", text).unwrap());
        assert_eq!(sizing.bytes, (1000 + 200 + 512) << 20);
        assert!(sizing.arithmetic.starts_with("1000 MiB") && sizing.arithmetic.ends_with("= 1712 MiB"));
    }
}
