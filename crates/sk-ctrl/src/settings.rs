//! What the controller is told when it starts.

use std::time::Duration;

use sk_api::simulation::names;

/// How long a driver may take from its Job's creation until it runs, unless told. Images of a few hundred megabytes are
/// there in less; a node that an autoscaler has to bring takes two to four minutes.
pub const DEFAULT_START_LIMIT: Duration = Duration::from_secs(300);

/// What the controller is told when it starts.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The controller's own namespace: the Lease is there, and the driver unless a Simulation says otherwise.
    pub namespace: String,
    /// The driver's image where a Simulation names none.
    pub driver_image: String,
    /// The driver's ServiceAccount.
    pub driver_account: String,
    /// May drivers run in other namespaces than the controller's?
    pub any_namespace: bool,
    /// May Simulations have hooks?
    pub allow_hooks: bool,
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
            driver_account: names::DRIVER_ACCOUNT.to_owned(),
            any_namespace: false,
            allow_hooks: false,
            start_limit: DEFAULT_START_LIMIT,
            records_url: format!("https://{}.{namespace}.svc", names::CONTROLLER_NAME),
        }
    }
}
