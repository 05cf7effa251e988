//! Names that the controller, the driver, skctl and users agree on. Whoever makes or looks for an object of a run takes
//! its name from here.

/// The group of both kinds.
pub const GROUP: &str = "simkube.io";
/// Where the controller lives, and the driver, by default.
pub const NAMESPACE: &str = "simkube";

/// On everything that belongs to a simulation: its name.
pub const SIMULATION_LABEL: &str = "simkube.io/simulation";
/// `true` on everything that is replayed.
pub const VIRTUAL_LABEL: &str = "simkube.io/virtual";
/// What part of SimKube an object belongs to: [`CONTROLLER`] or [`DRIVER`].
pub const COMPONENT_LABEL: &str = "simkube.io/component";
/// The value of [`COMPONENT_LABEL`] on the controller's objects.
pub const CONTROLLER: &str = "controller";
/// The value of [`COMPONENT_LABEL`] on the driver's objects.
pub const DRIVER: &str = "driver";
/// `true` on the namespace of an installation: the mark that simulations may be run on this cluster.
pub const INSTALLED_LABEL: &str = "simkube.io/installed";
/// The ConfigMap in the controller's namespace that carries [`INSTALLED_LABEL`] too: the mark of an installation whose
/// namespace was there before, and so is not its own to label.
pub const INSTALLED: &str = "simkube-installed";
/// `true` on the Secrets that a Simulation may hand to its driver; without it a Simulation that names one fails.
pub const DRIVER_SECRET_LABEL: &str = "simkube.io/driver-secret";
/// On a Simulation whose trace was uploaded: the name that the person typed.
pub const TRACE_NAME_ANNOTATION: &str = "simkube.io/trace-name";

/// On a Simulation: the scenario that its runs are judged by. skctl writes it, whoever judges reads it.
pub const SCENARIO_ANNOTATION: &str = "simkube.io/scenario";

/// Where a replayed pod template was recorded.
pub const ORIGINAL_NAMESPACE_ANNOTATION: &str = "static.simkube.io/original-namespace";
/// Which of its owner's templates a pod was made from.
pub const TEMPLATE_ANNOTATION: &str = "static.simkube.io/template";
/// The stable hash of a pod's spec.
pub const POD_HASH_ANNOTATION: &str = "static.simkube.io/pod-spec-stable-hash";
/// How many pods of the same hash came before.
pub const POD_SEQUENCE_ANNOTATION: &str = "static.simkube.io/pod-sequence-number";
/// How long KWOK waits before a pod's containers are created, `<n>ms`.
pub const CREATE_DELAY_ANNOTATION: &str = "simkube.io/kwok-stage-create-delay";
/// The jitter of [`CREATE_DELAY_ANNOTATION`].
pub const CREATE_DELAY_JITTER_ANNOTATION: &str = "simkube.io/kwok-stage-create-delay-jitter";
/// How long KWOK waits before a pod is ready, `<n>ms`.
pub const READY_DELAY_ANNOTATION: &str = "simkube.io/kwok-stage-ready-delay";
/// The jitter of [`READY_DELAY_ANNOTATION`].
pub const READY_DELAY_JITTER_ANNOTATION: &str = "simkube.io/kwok-stage-ready-delay-jitter";
/// `true` on running pods that are to end.
pub const COMPLETE_LABEL: &str = "simkube.io/kwok-stage-complete";
/// When such a pod ends, RFC 3339.
pub const COMPLETE_TIME_ANNOTATION: &str = "simkube.io/kwok-stage-complete-time";

/// Replayed pods go to nodes with this label and value.
pub const NODE_SELECTOR: (&str, &str) = ("type", "virtual");
/// The taint of virtual nodes, which replayed pods tolerate.
pub const NODE_TAINT: &str = "kwok-provider";

/// The field manager of replayed objects.
pub const REPLAY_MANAGER: &str = "simkube";
/// The field manager of what the driver writes into a Simulation's status.
pub const DRIVER_MANAGER: &str = "sk-driver";
/// The field manager of what the controller writes.
pub const CONTROLLER_MANAGER: &str = "sk-ctrl";

/// One simulation runs per cluster: the one whose name is this Lease's holder. It is in the controller's namespace.
pub const LEASE: &str = "sk-lease";
/// A driver without a controller holds a Lease of the same name here, whatever namespace its user works in, so that
/// everybody who asks whether something runs on this cluster knows where to look.
pub const DRIVER_LEASE_NAMESPACE: &str = "default";
/// Who may clean up before a Simulation goes.
pub const FINALIZER: &str = "simkube.io/clean-up";

/// The controller's Deployment, ServiceAccount and Service.
pub const CONTROLLER_NAME: &str = "sk-ctrl";
/// The ConfigMap that says whom to trust when talking to the controller, under [`CA_KEY`].
pub const CONTROLLER_CA: &str = "sk-ctrl-ca";
/// The key of a certificate authority in ConfigMaps and Secrets.
pub const CA_KEY: &str = "ca.crt";
/// Tokens for the controller's own endpoint have this audience.
pub const CONTROLLER_AUDIENCE: &str = "simkube-ctrl";
/// The subresource of Simulations whose `get` and `update` mean reading and writing records and logs.
pub const RECORD_SUBRESOURCE: &str = "record";
/// The subresource of Simulations whose `create` and `get` mean sending a trace to the controller and fetching it.
pub const TRACE_SUBRESOURCE: &str = "trace";
/// How a `tracePath` begins that names a trace by its SHA-256, which the controller was sent.
pub const UPLOADED_TRACE: &str = "uploaded:";
/// The ServiceAccount whose tokens let people read records and logs and send traces, and its ClusterRole.
pub const RECORD_READER: &str = "sk-record-reader";
/// The ClusterRole for people who run simulations; an installation binds it to nobody.
pub const USER_ROLE: &str = "simkube-user";
/// The driver's ServiceAccount, and the ClusterRole that it has everywhere.
pub const DRIVER_ACCOUNT: &str = "sk-driver";
/// The ClusterRole that a driver binds for itself in each namespace of its run, and that binding.
pub const DRIVER_REPLAY_ROLE: &str = "sk-driver-replay";

/// In the driver's environment: the Simulation's name.
pub const ENV_SIMULATION: &str = "SIMKUBE_SIMULATION";
/// In the driver's environment: `true` where the installation allows hooks. Without it a driver runs none.
pub const ENV_ALLOW_HOOKS: &str = "SIMKUBE_ALLOW_HOOKS";
/// In the driver's environment: a folder with `tls.crt` and `tls.key` for its webhook.
pub const ENV_CERT_DIR: &str = "SIMKUBE_CERT_DIR";
/// In the driver's environment: where the controller takes records, without the path.
pub const ENV_RECORDS_URL: &str = "SIMKUBE_RECORDS_URL";
/// In the driver's environment: the file with the authority behind [`ENV_RECORDS_URL`].
pub const ENV_RECORDS_CA: &str = "SIMKUBE_RECORDS_CA";
/// In the driver's environment: the file with a token for [`ENV_RECORDS_URL`]; it is renewed in place.
pub const ENV_RECORDS_TOKEN: &str = "SIMKUBE_RECORDS_TOKEN";
/// In the driver's environment: the file that its failure reason goes to.
pub const ENV_TERMINATION_LOG: &str = "SIMKUBE_TERMINATION_LOG";

/// The longest name of a Simulation: `sk-<name>-driver-<index>` is a host name of at most 63 characters, of which
/// `sk-`, `-driver`, and a dash with three digits take 14.
pub const MAX_SIMULATION_NAME: usize = 63 - 14;
/// The most repetitions, so that the last index has three digits.
pub const MAX_REPETITIONS: u32 = 1000;

/// The `tracePath` of an uploaded trace.
pub fn uploaded_trace_path(sha256: &str) -> String {
    format!("{UPLOADED_TRACE}{sha256}")
}

/// The SHA-256 that a `tracePath` names, if it is an uploaded trace's; `None` also where the rest is no such hash, for
/// it becomes part of a file's name.
pub fn uploaded_trace(path: &str) -> Option<&str> {
    path.strip_prefix(UPLOADED_TRACE).filter(|hash| is_sha256(hash))
}

/// Whether `text` is a SHA-256 as the contract writes it: 64 lower-case hexadecimal digits.
pub fn is_sha256(text: &str) -> bool {
    text.len() == SHA256_DIGITS && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// 256 bits, four per digit.
const SHA256_DIGITS: usize = 256 / 4;

/// The root that owns everything of a run.
pub fn metaroot(simulation: &str) -> String {
    format!("sk-{simulation}-metaroot")
}

/// The root that owns what one repetition replays; itself owned by the metaroot, if there is one.
pub fn driver_root(simulation: &str, repetition: u32) -> String {
    format!("sk-{simulation}-driver-root-{repetition}")
}

/// The Job that replays.
pub fn driver_job(simulation: &str) -> String {
    format!("sk-{simulation}-driver")
}

/// The Service that leads to the driver's webhook.
pub fn driver_service(simulation: &str) -> String {
    format!("sk-{simulation}-driver-svc")
}

/// The Secret with the webhook's certificate (and, with cert-manager, its Certificate).
pub fn driver_certificate(simulation: &str) -> String {
    format!("sk-{simulation}-driver-cert")
}

/// The ConfigMap that tells the driver whom to trust when it sends its record.
pub fn driver_ca(simulation: &str) -> String {
    format!("sk-{simulation}-driver-ca")
}

/// The ClusterRoleBinding of the driver's account, where the installation has none for its namespace.
pub fn driver_binding(simulation: &str) -> String {
    format!("sk-{simulation}-driver")
}

/// The Prometheus of a run.
pub fn prometheus(simulation: &str) -> String {
    format!("sk-{simulation}-prom")
}

/// The configuration that leads new pods to the driver.
pub fn webhook(simulation: &str) -> String {
    format!("sk-{simulation}-mutatepods")
}

/// The namespace in which the objects of a recorded namespace are replayed.
pub fn virtual_namespace(prefix: &str, namespace: &str) -> String {
    format!("{prefix}-{namespace}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_uploaded_trace_is_64_lower_case_digits_and_nothing_else() {
        let hash = "0123456789abcdef".repeat(4);
        assert_eq!(uploaded_trace(&uploaded_trace_path(&hash)), Some(hash.as_str()));
        for other in [
            "".to_owned(),
            hash.clone(),
            format!("uploaded:{}", &hash[1..]),
            format!("uploaded:{hash}0"),
            format!("uploaded:{}", hash.to_uppercase()),
            format!("uploaded:{}", "../".repeat(22)),
            format!("file:///{hash}"),
        ] {
            assert_eq!(uploaded_trace(&other), None, "{other}");
        }
    }

    #[test]
    fn the_longest_simulation_still_has_names_that_are_dns_labels() {
        let longest = "a".repeat(MAX_SIMULATION_NAME);
        assert!(driver_service(&longest).len() <= 63);
        assert!(format!("{}-{}", driver_job(&longest), MAX_REPETITIONS - 1).len() <= 63);
    }
}
