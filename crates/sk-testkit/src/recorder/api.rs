//! Plays requests against a real API server and keeps its answers. Nothing else runs beside it but etcd, so nobody changes
//! what the requests are about.

use std::path::PathBuf;
use std::time::Duration;

use http::Request;
use http_body_util::BodyExt;
use serde_json::Value;

use super::{RecordError, today, write_lines};
use crate::api::{Answered, Call, Family, Player, Recorded, path_of};
use crate::control_plane::{ControlError, ControlPlane};
use crate::options::{Component, Options};

/// A real API server that is asked.
pub struct ApiArena {
    plane: ControlPlane,
}

impl ApiArena {
    /// Starts etcd and an API server with Kubernetes' own defaults.
    pub async fn start() -> Result<Self, RecordError> {
        let without = [Component::ControllerManager, Component::Scheduler, Component::Kwok].into();
        let options = Options { without, ..Options::default() };
        Ok(Self { plane: ControlPlane::start(options).await? })
    }

    /// Plays a family.
    pub async fn record(&self, family: &Family) -> Result<Recorded, RecordError> {
        let mut player = Player::new(family);
        while let Some(call) = player.next_call() {
            let answered = self.send(&call).await?;
            player.answered(&call, answered);
        }
        Ok(Recorded {
            kubernetes: self.plane.version().await?,
            recorded: today(),
            family: family.source.clone(),
            answers: player.into_answers(),
        })
    }

    async fn send(&self, call: &Call) -> Result<Answered, RecordError> {
        let step = || ControlError::request(format!("{} {}", call.method, call.path));
        let body = match &call.body {
            Value::Null => Vec::new(),
            Value::String(text) => text.clone().into_bytes(),
            body => body.to_string().into_bytes(),
        };
        let is_watch = call.path.contains("watch=");
        let path = if is_watch { format!("{}&timeoutSeconds=1", call.path) } else { call.path.clone() };
        let request =
            Request::builder().method(call.method.as_str()).uri(path).header("Content-Type", &call.content_type);
        let request = request.header("Accept", "application/json").body(kube::client::Body::from(body));
        let request = request.map_err(|error| step()(kube::Error::HttpError(error)))?;
        let response = self.plane.client().send(request).await.map_err(step())?;
        let code = response.status().as_u16();
        let collected = tokio::time::timeout(Duration::from_secs(60), response.into_body().collect()).await;
        let bytes = match collected {
            Ok(Ok(collected)) => collected.to_bytes(),
            Ok(Err(error)) => return Err(RecordError::Prepare(step()(error))),
            Err(_) => return Err(RecordError::NoAnswer(60)),
        };
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let body = match is_watch && code == 200 {
            true => text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).collect(),
            false => serde_json::from_str(&text).unwrap_or(Value::String(text)),
        };
        Ok(Answered { code, body })
    }
}

/// Writes a recording: a line per answer's field.
pub fn write_api(name: &str, recorded: &Recorded) -> Result<PathBuf, RecordError> {
    write_lines(recorded, 4, path_of(name))
}
