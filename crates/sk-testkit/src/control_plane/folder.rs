//! The temporary folder of one control plane: certificates, tokens, kubeconfigs, configurations, data and logs.
//!
//! It goes when the control plane does, except when a test panics: then the logs stay, and the test says where.

use std::fs;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::certificates::{Authority, Keys};
use super::error::StartError;
use super::ports::Ports;
use crate::options::{Component, Options};

/// The account that tests use.
pub(super) const ADMIN: &str = "admin";

/// Names that the servers answer to. The last is how pods would know the API server.
const SERVING_NAMES: [&str; 3] = ["127.0.0.1", "localhost", "kubernetes.default.svc"];

/// Files that a control plane needs before it starts.
pub(super) struct Folder {
    root: TempDir,
    authority: Authority,
}

impl Folder {
    /// Writes everything that does not depend on ports.
    pub(super) fn new() -> Result<Self, StartError> {
        let root = tempfile::Builder::new()
            .prefix("simkube-control-plane-")
            .tempdir()
            .map_err(|source| StartError::Folder { path: std::env::temp_dir(), source })?;
        let folder = Self { root, authority: Authority::new()? };
        folder.make(&folder.logs())?;
        let serving = folder.authority.serving(&SERVING_NAMES)?;
        let tokens = Keys::new()?;
        folder.write("ca.crt", &folder.authority.certificate())?;
        folder.write("serving.crt", &serving.certificate)?;
        folder.write("serving.key", &serving.key)?;
        folder.write("tokens.key", &tokens.private)?;
        folder.write("tokens.pub", &tokens.public)?;
        Ok(folder)
    }

    /// Writes what depends on ports and options.
    pub(super) fn configure(&self, options: &Options, ports: &Ports) -> Result<(), StartError> {
        let accounts = accounts();
        let lines: Vec<_> = accounts.iter().map(Account::csv_line).collect();
        self.write("tokens.csv", &lines.join("\n"))?;
        for account in &accounts {
            let kubeconfig = self.connection(ports).kubeconfig(&json!({"token": account.token}));
            self.write(&format!("{}.kubeconfig", account.file), &kubeconfig.to_string())?;
        }
        self.configure_scheduler(options.scheduler.as_ref())?;
        self.write("stages.yaml", &options.stages)
    }

    /// Writes what the scheduler reads when it starts.
    pub(super) fn configure_scheduler(&self, configuration: Option<&Value>) -> Result<(), StartError> {
        self.write("scheduler.yaml", &self.scheduler_configuration(configuration).to_string())
    }

    /// A file in the folder.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Where the logs are.
    pub(super) fn logs(&self) -> PathBuf {
        self.path("logs")
    }

    /// One component's log.
    pub(super) fn log(&self, component: Component) -> PathBuf {
        self.logs().join(component.name()).with_extension("log")
    }

    /// A kubeconfig that one of the accounts uses.
    pub(super) fn kubeconfig(&self, account: &str) -> PathBuf {
        self.path(&format!("{account}.kubeconfig"))
    }

    /// The authority that signed the serving certificate.
    pub(super) fn authority(&self) -> &Authority {
        &self.authority
    }

    /// Keeps the folder, without its data, and says where it is.
    pub(super) fn keep(&mut self) -> PathBuf {
        self.root.disable_cleanup(true);
        let _ = fs::remove_dir_all(self.path("etcd"));
        self.root.path().to_owned()
    }

    /// How clients find this control plane.
    pub(super) fn connection(&self, ports: &Ports) -> Connection {
        Connection { server: format!("https://127.0.0.1:{}", ports.api_server), authority: self.path("ca.crt") }
    }

    fn scheduler_configuration(&self, configuration: Option<&Value>) -> Value {
        let mut configuration = configuration.cloned().unwrap_or_else(|| json!({}));
        let given = |value: &Value| value.as_str().is_some();
        if !given(&configuration["apiVersion"]) {
            configuration["apiVersion"] = "kubescheduler.config.k8s.io/v1".into();
        }
        configuration["kind"] = "KubeSchedulerConfiguration".into();
        configuration["leaderElection"]["leaderElect"] = false.into();
        configuration["clientConnection"]["kubeconfig"] = json!(self.kubeconfig(Component::Scheduler.name()));
        configuration
    }

    fn write(&self, name: &str, text: &str) -> Result<(), StartError> {
        let path = self.path(name);
        fs::write(&path, text).map_err(|source| StartError::Folder { path, source })
    }

    fn make(&self, path: &Path) -> Result<(), StartError> {
        fs::create_dir_all(path).map_err(|source| StartError::Folder { path: path.to_owned(), source })
    }
}

/// Where an API server is and whom to trust about it.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    pub(crate) server: String,
    pub(crate) authority: PathBuf,
}

impl Connection {
    /// A kubeconfig for a user with these credentials. It is JSON, which is YAML.
    pub(crate) fn kubeconfig(&self, user: &Value) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "testkit",
            "clusters": [{"name": "testkit", "cluster": {
                "server": self.server,
                "certificate-authority": self.authority,
            }}],
            "users": [{"name": "testkit", "user": user}],
            "contexts": [{"name": "testkit", "context": {"cluster": "testkit", "user": "testkit"}}],
        })
    }
}

/// Somebody whom the API server knows by a token.
struct Account {
    file: &'static str,
    user: &'static str,
    group: &'static str,
    token: String,
}

/// The components act as the users whom Kubernetes' built-in roles are bound to, so that RBAC is real here too.
fn accounts() -> Vec<Account> {
    let known = [
        (ADMIN, "admin", "system:masters"),
        (Component::ControllerManager.name(), "system:kube-controller-manager", ""),
        (Component::Scheduler.name(), "system:kube-scheduler", ""),
        (Component::Kwok.name(), "kwok", "system:masters"),
        (Component::Karpenter.name(), "karpenter", "system:masters"),
    ];
    known.into_iter().map(|(file, user, group)| Account { file, user, group, token: random_token() }).collect()
}

impl Account {
    fn csv_line(&self) -> String {
        format!("{},{},{},\"{}\"", self.token, self.user, self.user, self.group)
    }
}

/// 128 bits that another user of the machine cannot guess. The standard library's hash keys are its only randomness.
fn random_token() -> String {
    let word = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", word(), word())
}
