//! Prepares everything for the process of a pod: folder, ServiceAccount, volumes, environment and command. What a local
//! process cannot have is refused with a message in the pod's status.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::{
    ConfigMap, Container, EnvVar, EnvVarSource, KeyToPath, Pod, PodSpec, ProjectedVolumeSource, Secret, ServiceAccount,
    Volume,
};
use kube::api::{Api, PostParams};
use serde_json::{Value, json};

use super::{Context, expand};

/// What is run for a pod.
pub(super) struct Prepared {
    /// The program and its arguments.
    pub(super) command: Vec<OsString>,
    /// Its variables.
    pub(super) env: Vec<(OsString, OsString)>,
    /// Its own folder, in which it runs.
    pub(super) folder: PathBuf,
    /// Where its last words go.
    pub(super) last_words: PathBuf,
}

/// Why a pod is not run.
pub(super) enum Refusal {
    /// There is no such image; a kubelet goes on trying to pull it.
    Image(String),
    /// The pod can never run as a local process.
    Never(String),
}

impl From<String> for Refusal {
    fn from(words: String) -> Self {
        Self::Never(words)
    }
}

/// Makes everything ready, or says why this pod cannot be run here.
pub(super) async fn prepare(context: &Context, pod: &Pod) -> Result<Prepared, Refusal> {
    let spec = pod.spec.as_ref().ok_or_else(|| "the pod has no spec".to_owned())?;
    let container = only_container(spec)?;
    let preparation = Preparation { context, pod, spec, folder: context.pod_folder(pod) };
    make_folder(&preparation.folder)?;
    preparation.write_account().await?;
    let last_words = preparation.folder.join("termination-log");
    let mut mounts = preparation.mounts(container).await?;
    // Kubernetes' default path is a device file of the container's own; here it is a file of the pod's.
    let path = container.termination_message_path.clone().unwrap_or_else(|| "/dev/termination-log".to_owned());
    mounts.push((path, last_words.clone()));
    let variables = preparation.variables(container, &mounts).await?;
    let command = preparation.command(container, &variables, &mounts)?;
    let kubeconfig = preparation.folder.join("kubeconfig");
    let mut env: Vec<_> = variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
    env.push(("KUBECONFIG".into(), kubeconfig.into()));
    Ok(Prepared { command, env, folder: preparation.folder, last_words })
}

fn only_container(spec: &PodSpec) -> Result<&Container, String> {
    let init = spec.init_containers.as_ref().map_or(0, Vec::len);
    match (&spec.containers[..], init) {
        ([container], 0) => Ok(container),
        (containers, init) => Err(format!(
            "the process runner runs pods of one container; this has {} and {init} init containers",
            containers.len()
        )),
    }
}

struct Preparation<'a> {
    context: &'a Context,
    pod: &'a Pod,
    spec: &'a PodSpec,
    folder: PathBuf,
}

impl Preparation<'_> {
    fn namespace(&self) -> &str {
        self.pod.metadata.namespace.as_deref().unwrap_or("default")
    }

    fn account(&self) -> &str {
        self.spec.service_account_name.as_deref().filter(|name| !name.is_empty()).unwrap_or("default")
    }

    /// The files that a pod finds under /var/run/secrets/kubernetes.io/serviceaccount, and a kubeconfig that uses them.
    async fn write_account(&self) -> Result<(), String> {
        let folder = self.account_folder();
        make_folder(&folder)?;
        let authority =
            fs::read(&self.context.connection.authority).map_err(|error| format!("read the CA: {error}"))?;
        let token_file = folder.join("token");
        let kubeconfig = self.context.connection.kubeconfig(&json!({"tokenFile": token_file}));
        write_file(&token_file, self.token(None).await?.as_bytes())?;
        write_file(&folder.join("ca.crt"), &authority)?;
        write_file(&folder.join("namespace"), self.namespace().as_bytes())?;
        write_file(&self.folder.join("kubeconfig"), kubeconfig.to_string().as_bytes())
    }

    fn account_folder(&self) -> PathBuf {
        self.folder.join("serviceaccount")
    }

    /// A token of the pod's ServiceAccount, as a kubelet asks for it.
    async fn token(&self, audience: Option<&str>) -> Result<String, String> {
        let api: Api<ServiceAccount> = Api::namespaced(self.context.client.clone(), self.namespace());
        let request = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": {"audiences": audience.map_or_else(Vec::new, |audience| vec![audience]), "boundObjectRef": {
                "apiVersion": "v1", "kind": "Pod", "name": self.pod.metadata.name, "uid": self.pod.metadata.uid,
            }},
        });
        let answer: Result<Value, _> =
            api.create_subresource("token", self.account(), &PostParams::default(), &request).await;
        let answer = answer.map_err(|error| format!("get a token for ServiceAccount {}: {error}", self.account()))?;
        Ok(answer["status"]["token"].as_str().unwrap_or_default().to_owned())
    }

    /// Where each of the container's mounts really is.
    async fn mounts(&self, container: &Container) -> Result<Vec<(String, PathBuf)>, String> {
        let mut mounts = Vec::new();
        for mount in container.volume_mounts.iter().flatten() {
            let volume = self.spec.volumes.iter().flatten().find(|volume| volume.name == mount.name);
            let volume = volume.ok_or_else(|| format!("the pod has no volume {}", mount.name))?;
            let place = self.volume(volume).await?;
            let place = mount.sub_path.as_ref().map_or_else(|| place.clone(), |path| place.join(path));
            mounts.push((mount.mount_path.trim_end_matches('/').to_owned(), place));
        }
        Ok(mounts)
    }

    async fn volume(&self, volume: &Volume) -> Result<PathBuf, String> {
        let place = self.folder.join("volumes").join(&volume.name);
        if let Some(host_path) = &volume.host_path {
            return Ok(PathBuf::from(&host_path.path));
        }
        if let (Some(claim), Some(claims)) = (&volume.persistent_volume_claim, &self.context.claims) {
            let place = claims.join(self.namespace()).join(&claim.claim_name);
            make_folder(&place)?;
            return Ok(place);
        }
        if volume.projected.is_some() && volume.name.starts_with("kube-api-access-") {
            return Ok(self.account_folder());
        }
        let files = if let Some(secret) = &volume.secret {
            self.secret(secret.secret_name.as_deref().unwrap_or_default()).await?
        } else if let Some(config_map) = &volume.config_map {
            chosen(self.config_map(&config_map.name).await?, config_map.items.as_deref())?
        } else if let Some(projected) = &volume.projected {
            self.projected(projected).await?
        } else if volume.empty_dir.is_some() {
            BTreeMap::new()
        } else {
            return Err(format!(
                "volume {} is of a kind that a local process cannot have: use hostPath, secret, configMap, projected or \
                 emptyDir",
                volume.name
            ));
        };
        make_folder(&place)?;
        for (name, content) in files {
            let file = place.join(name);
            file.parent().map_or(Ok(()), make_folder)?;
            write_file(&file, &content)?;
        }
        Ok(place)
    }

    /// Files from several sources. Tokens are not renewed, so they are asked for as long as the API server grants them.
    async fn projected(&self, volume: &ProjectedVolumeSource) -> Result<BTreeMap<String, Vec<u8>>, String> {
        let mut files = BTreeMap::new();
        for source in volume.sources.iter().flatten() {
            if let Some(token) = &source.service_account_token {
                files.insert(token.path.clone(), self.token(token.audience.as_deref()).await?.into_bytes());
            }
            if let Some(map) = &source.config_map {
                files.extend(self.config_map(&map.name).await?);
            }
            if let Some(secret) = &source.secret {
                files.extend(self.secret(&secret.name).await?);
            }
        }
        Ok(files)
    }

    async fn secret(&self, name: &str) -> Result<BTreeMap<String, Vec<u8>>, String> {
        let api: Api<Secret> = Api::namespaced(self.context.client.clone(), self.namespace());
        let secret = api.get(name).await.map_err(|error| format!("get Secret {name}: {error}"))?;
        Ok(secret.data.into_iter().flatten().map(|(key, bytes)| (key, bytes.0)).collect())
    }

    async fn config_map(&self, name: &str) -> Result<BTreeMap<String, Vec<u8>>, String> {
        let api: Api<ConfigMap> = Api::namespaced(self.context.client.clone(), self.namespace());
        let map = api.get(name).await.map_err(|error| format!("get ConfigMap {name}: {error}"))?;
        Ok(map.data.into_iter().flatten().map(|(key, text)| (key, text.into_bytes())).collect())
    }

    /// The container's variables in order: a later one may refer to an earlier one, and replaces it.
    async fn variables(
        &self,
        container: &Container,
        mounts: &[(String, PathBuf)],
    ) -> Result<BTreeMap<String, String>, String> {
        let mut variables = BTreeMap::new();
        for source in container.env_from.iter().flatten() {
            let values = match (&source.secret_ref, &source.config_map_ref) {
                (Some(secret), _) => self.secret(&secret.name).await?,
                (None, Some(map)) => self.config_map(&map.name).await?,
                (None, None) => BTreeMap::new(),
            };
            let prefix = source.prefix.as_deref().unwrap_or_default();
            variables.extend(values.into_iter().map(|(key, value)| (format!("{prefix}{key}"), text(&value))));
        }
        for variable in container.env.iter().flatten() {
            let value = self.value(variable, &variables).await?;
            variables.insert(variable.name.clone(), expand::mounts(&value, mounts));
        }
        Ok(variables)
    }

    async fn value(&self, variable: &EnvVar, known: &BTreeMap<String, String>) -> Result<String, String> {
        let Some(source) = &variable.value_from else {
            let value = variable.value.as_deref().unwrap_or_default();
            return Ok(expand::references(value, |name| known.get(name).cloned()));
        };
        let missing = || format!("variable {} refers to what is not there", variable.name);
        let from_map =
            |map: BTreeMap<String, Vec<u8>>, key: &str| map.get(key).map(|value| text(value)).ok_or_else(missing);
        match source {
            EnvVarSource { secret_key_ref: Some(key), .. } => from_map(self.secret(&key.name).await?, &key.key),
            EnvVarSource { config_map_key_ref: Some(key), .. } => from_map(self.config_map(&key.name).await?, &key.key),
            EnvVarSource { field_ref: Some(field), .. } => self.field(&field.field_path).ok_or_else(missing),
            _ => Err(format!("variable {} comes from what a local process does not have", variable.name)),
        }
    }

    fn field(&self, path: &str) -> Option<String> {
        let metadata = &self.pod.metadata;
        match path {
            "metadata.name" => metadata.name.clone(),
            "metadata.namespace" => metadata.namespace.clone(),
            "metadata.uid" => metadata.uid.clone(),
            "spec.nodeName" => self.spec.node_name.clone(),
            "spec.serviceAccountName" => Some(self.account().to_owned()),
            "status.podIP" | "status.hostIP" => Some(self.context.address.clone()),
            path => in_map(path, "metadata.annotations", metadata.annotations.as_ref())
                .or_else(|| in_map(path, "metadata.labels", metadata.labels.as_ref())),
        }
    }

    /// The program that stands for the image, or the container's own command, and its arguments.
    fn command(
        &self,
        container: &Container,
        variables: &BTreeMap<String, String>,
        mounts: &[(String, PathBuf)],
    ) -> Result<Vec<OsString>, Refusal> {
        let image = container.image.as_deref().unwrap_or_default();
        let own = container.command.clone().unwrap_or_default();
        let given = own.iter().chain(container.args.iter().flatten()).map(|word| {
            let expanded = expand::references(word, |name| variables.get(name).cloned());
            OsString::from(expand::mounts(&expanded, mounts))
        });
        let stand_in = self.context.programs.get(image).filter(|_| own.is_empty());
        let command: Vec<_> = stand_in.into_iter().flatten().cloned().chain(given).collect();
        if stand_in.is_none() && own.is_empty() {
            return Err(Refusal::Image(format!(
                "the container has no command, and there is no program for its image {image}"
            )));
        }
        Ok(command)
    }
}

/// The files that `items` of a volume name, under the paths that they give them; all of them if there is no such list.
fn chosen(
    mut files: BTreeMap<String, Vec<u8>>,
    items: Option<&[KeyToPath]>,
) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let Some(items) = items else { return Ok(files) };
    let take = |item: &KeyToPath| {
        let content = files.remove(&item.key).ok_or_else(|| format!("the ConfigMap has no key {}", item.key))?;
        Ok((item.path.clone(), content))
    };
    items.iter().map(take).collect()
}

/// The value of `metadata.annotations['key']` or the like.
fn in_map(path: &str, of: &str, map: Option<&BTreeMap<String, String>>) -> Option<String> {
    let key = path.strip_prefix(of)?.strip_prefix("['")?.strip_suffix("']")?;
    map?.get(key).cloned()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn make_folder(path: &Path) -> Result<(), String> {
    fs::create_dir_all(path).map_err(|error| format!("make {}: {error}", path.display()))
}

fn write_file(path: &Path, content: &[u8]) -> Result<(), String> {
    fs::write(path, content).map_err(|error| format!("write {}: {error}", path.display()))
}
