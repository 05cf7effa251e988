//! The settings of the controller.

use std::time::Duration;

use sk_api::simulation::names;

/// How long a driver may take from its Job's creation until it runs, by default. Images of a few hundred megabytes are
/// there in less; a node that an autoscaler has to bring takes two to four minutes.
pub const DEFAULT_START_LIMIT: Duration = Duration::from_secs(300);

/// The settings of the controller.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The controller's own namespace: the Lease is there, and the driver unless a Simulation says otherwise.
    pub namespace: String,
    /// The driver's image where a Simulation names none.
    pub driver_image: String,
    /// Other images that a Simulation may name for its driver, whole or up to a `/`, `:` or `@`.
    pub allowed_images: Vec<String>,
    /// The driver's ServiceAccount.
    pub driver_account: String,
    /// May drivers run in other namespaces than the controller's?
    pub any_namespace: bool,
    /// May Simulations have hooks?
    pub allow_hooks: bool,
    /// May traces be mounted from nodes? Whoever may create Simulations can then have any file of a node read.
    pub local_traces: bool,
    /// How long a driver may take until it runs.
    pub start_limit: Duration,
    /// Where drivers send their records to, without the path.
    pub records_url: String,
}

impl Settings {
    /// As `skctl install sim` has them, for a controller in this namespace.
    pub fn in_namespace(namespace: &str, driver_image: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            driver_image: driver_image.to_owned(),
            allowed_images: Vec::new(),
            driver_account: names::DRIVER_ACCOUNT.to_owned(),
            any_namespace: false,
            allow_hooks: false,
            local_traces: false,
            start_limit: DEFAULT_START_LIMIT,
            records_url: format!("https://{}.{namespace}.svc", names::CONTROLLER_NAME),
        }
    }

    /// May a Simulation have this image for its driver? What runs there has the driver's account, and so its rights.
    pub fn allows_image(&self, image: &str) -> bool {
        image == self.driver_image || self.allowed_images.iter().any(|allowed| begins_with(image, allowed))
    }
}

/// Is `image` what `prefix` says, or something under it? `a/driver` stands for `a/driver:1`, not for `a/driver-of-mine`.
fn begins_with(image: &str, prefix: &str) -> bool {
    let separators = ['/', ':', '@'];
    let rest = image.strip_prefix(prefix);
    rest.is_some_and(|rest| rest.is_empty() || prefix.ends_with(separators) || rest.starts_with(separators))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_allowed_by_its_whole_name_or_up_to_a_separator() {
        let allowed_images = ["example.com/team", "local:", "x/y@sha256"].map(str::to_owned).to_vec();
        let settings = Settings { allowed_images, ..Settings::in_namespace("simkube", "sk-driver:1") };
        for (image, allowed) in [
            ("sk-driver:1", true),
            ("sk-driver:2", false),
            ("sk-driver:11", false),
            ("example.com/team", true),
            ("example.com/team/driver:3", true),
            ("example.com/team:3", true),
            ("example.com/teams/driver:3", false),
            ("local:anything", true),
            ("localhost", false),
            ("x/y@sha256:ab", true),
            ("", false),
        ] {
            assert_eq!(settings.allows_image(image), allowed, "{image}");
        }
    }
}
