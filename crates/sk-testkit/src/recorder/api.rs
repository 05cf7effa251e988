//! Sends requests to a real API server and keeps its responses. Only etcd runs beside it, so nothing else changes the
//! objects.

use std::path::PathBuf;
use std::time::Duration;

use http::Request;
use http_body_util::BodyExt;
use serde_json::Value;

use super::{RecordError, openapi, today, write_lines};
use crate::api::{Answered, Call, Family, Player, Recorded, path_of};
use crate::control_plane::{ControlError, ControlPlane, eventually};
use crate::fixture::OpenApi;
use crate::options::Options;

/// How long an answer may take. A watch is told to end after a second, or after what its request says.
const PATIENCE_SECS: u64 = 60;

/// A real API server that is asked.
pub struct ApiArena {
    plane: ControlPlane,
}

impl ApiArena {
    /// Starts etcd and an API server with Kubernetes' own defaults.
    pub async fn start() -> Result<Self, RecordError> {
        Ok(Self { plane: ControlPlane::start(Options::api_only()).await? })
    }

    /// Of which types its kinds are.
    pub async fn openapi(&self) -> Result<OpenApi, RecordError> {
        openapi::ask_openapi(&self.plane).await
    }

    /// Plays a family.
    pub async fn record(&self, family: &Family) -> Result<Recorded, RecordError> {
        let mut player = Player::new(family);
        while let Some(call) = player.next_call() {
            tokio::time::sleep(Duration::from_millis(family.pause_ms)).await;
            let answered = self.answer(&call).await.map_err(|source| RecordError::Call {
                family: family.name.clone(),
                call: call.name.clone(),
                source: Box::new(source),
            })?;
            player.answered(&call, answered);
        }
        Ok(Recorded {
            kubernetes: self.plane.version().await?,
            recorded: today(),
            family: family.source.clone(),
            answers: player.into_answers(),
        })
    }

    async fn answer(&self, call: &Call) -> Result<Answered, RecordError> {
        let patience = Duration::from_secs(PATIENCE_SECS);
        let answered = tokio::time::timeout(patience, self.send(call)).await;
        let answered = answered.map_err(|_| RecordError::NoAnswer(PATIENCE_SECS))??;
        if answered.code == 201 && call.path.ends_with("/customresourcedefinitions") {
            self.wait_until_served(&answered.body["spec"]).await?;
        }
        Ok(answered)
    }

    /// A server takes a definition first, and serves its kind a moment later.
    async fn wait_until_served(&self, definition: &Value) -> Result<(), RecordError> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (group, plural) = (text(&definition["group"]), text(&definition["names"]["plural"]));
        let versions = definition["versions"].as_array().into_iter().flatten();
        for version in versions.filter(|version| version["served"] == true) {
            let path = format!("/apis/{group}/{}/{plural}", text(&version["name"]));
            let look = || async { Ok(self.send(&get(&path)).await.ok().filter(|answered| answered.code == 200)) };
            eventually(&format!("{path} is served"), Duration::from_secs(PATIENCE_SECS), look).await?;
        }
        Ok(())
    }

    async fn send(&self, call: &Call) -> Result<Answered, RecordError> {
        let step = || ControlError::request(format!("{} {}", call.method, call.path));
        let body = match &call.body {
            Value::Null => Vec::new(),
            Value::String(text) => text.clone().into_bytes(),
            body => body.to_string().into_bytes(),
        };
        let is_watch = call.path.contains("watch=");
        let is_endless = is_watch && !call.path.contains("timeoutSeconds=");
        let path = if is_endless { format!("{}&timeoutSeconds=1", call.path) } else { call.path.clone() };
        let request =
            Request::builder().method(call.method.as_str()).uri(path).header("Content-Type", &call.content_type);
        let request = request.header("Accept", "application/json").body(kube::client::Body::from(body));
        let request = request.map_err(|error| step()(kube::Error::HttpError(error)))?;
        let response = self.plane.client().send(request).await.map_err(step())?;
        let code = response.status().as_u16();
        let collected = response.into_body().collect().await;
        let bytes = collected.map_err(|error| RecordError::Prepare(step()(error)))?.to_bytes();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let body = match is_watch && code == 200 {
            true => text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).collect(),
            false => serde_json::from_str(&text).unwrap_or(Value::String(text)),
        };
        Ok(Answered { code, body })
    }
}

fn get(path: &str) -> Call {
    Call {
        name: String::new(),
        method: "GET".to_owned(),
        path: path.to_owned(),
        content_type: "application/json".to_owned(),
        body: Value::Null,
    }
}

/// Writes a recording: a line per answer's field.
pub fn write_api(name: &str, recorded: &Recorded) -> Result<PathBuf, RecordError> {
    write_lines(recorded, 4, path_of(name))
}
