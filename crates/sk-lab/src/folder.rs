//! The folder of one control plane: certificates, tokens, kubeconfigs, configurations, data and logs.
//!
//! A temporary folder is deleted with the control plane, unless its logs are to be kept; a folder that the caller chose
//! stays. Only its owner may read it, because it holds the keys of the cluster.

use std::fs::{self, OpenOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::certificates::{Authority, Keys};
use crate::error::StartError;
use crate::options::{Component, Options};
use crate::ports::Ports;

/// The account that tests use.
pub(crate) const ADMIN: &str = "admin";

/// Keys and tokens are for whoever started the control plane.
const OWNER_ONLY: u32 = 0o600;

/// Names that the servers answer to. The last is how pods would know the API server.
const SERVING_NAMES: [&str; 3] = ["127.0.0.1", "localhost", "kubernetes.default.svc"];

/// Where everything lies.
enum Root {
    /// Removed when it is dropped.
    Temporary(TempDir),
    /// Somebody's own.
    Chosen(PathBuf),
}

impl Root {
    fn path(&self) -> &Path {
        match self {
            Self::Temporary(folder) => folder.path(),
            Self::Chosen(folder) => folder,
        }
    }
}

/// Files that a control plane needs before it starts.
pub(crate) struct Folder {
    root: Root,
    authority: Authority,
}

impl Folder {
    /// Writes everything that does not depend on ports.
    pub(crate) fn new(place: Option<&Path>) -> Result<Self, StartError> {
        let root = match place {
            Some(place) => Root::Chosen(place.to_owned()),
            None => Root::Temporary(
                tempfile::Builder::new()
                    .prefix("simkube-control-plane-")
                    .tempdir()
                    .map_err(|source| StartError::Folder { path: std::env::temp_dir(), source })?,
            ),
        };
        let folder = Self { root, authority: Authority::new()? };
        // What a start that found its ports taken has left: another one has other peers.
        let _ = fs::remove_dir_all(folder.path("etcd"));
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
    pub(crate) fn configure(&self, options: &Options, ports: &Ports) -> Result<(), StartError> {
        let accounts = accounts();
        let lines: Vec<_> = accounts.iter().map(Account::csv_line).collect();
        self.write("tokens.csv", &lines.join("\n"))?;
        for account in &accounts {
            let kubeconfig = self.connection(&options.name, ports).kubeconfig(&json!({"token": account.token}));
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
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Where the logs are.
    pub(crate) fn logs(&self) -> PathBuf {
        self.path("logs")
    }

    /// One component's log.
    pub(crate) fn log(&self, component: Component) -> PathBuf {
        self.logs().join(component.name()).with_extension("log")
    }

    /// A kubeconfig that one of the accounts uses.
    pub(crate) fn kubeconfig(&self, account: &str) -> PathBuf {
        self.path(&format!("{account}.kubeconfig"))
    }

    /// The authority that signed the serving certificate.
    pub(crate) fn authority(&self) -> &Authority {
        &self.authority
    }

    /// Keeps the folder, without its data, and says where it is.
    pub(crate) fn keep(&mut self) -> PathBuf {
        if let Root::Temporary(folder) = &mut self.root {
            folder.disable_cleanup(true);
        }
        let _ = fs::remove_dir_all(self.path("etcd"));
        self.root.path().to_owned()
    }

    /// How clients find this control plane.
    pub(crate) fn connection(&self, name: &str, ports: &Ports) -> Connection {
        let server = format!("https://127.0.0.1:{}", ports.api_server);
        Connection { name: name.to_owned(), server, authority: self.path("ca.crt") }
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
        let written = OpenOptions::new().write(true).create(true).truncate(true).mode(OWNER_ONLY).open(&path);
        let written = written.and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|source| StartError::Folder { path, source })
    }

    fn make(&self, path: &Path) -> Result<(), StartError> {
        fs::create_dir_all(path).map_err(|source| StartError::Folder { path: path.to_owned(), source })
    }
}

/// Where an API server is and whom to trust about it.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    pub(crate) name: String,
    pub(crate) server: String,
    pub(crate) authority: PathBuf,
}

impl Connection {
    /// A kubeconfig for a user with these credentials. It is JSON, which is YAML.
    pub(crate) fn kubeconfig(&self, user: &Value) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": self.name,
            "clusters": [{"name": self.name, "cluster": {
                "server": self.server,
                "certificate-authority": self.authority,
            }}],
            "users": [{"name": self.name, "user": user}],
            "contexts": [{"name": self.name, "context": {"cluster": self.name, "user": self.name}}],
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
