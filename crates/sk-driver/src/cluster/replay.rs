//! The replay loop: takes operations when they are due and hands them to a few workers.
//!
//! Order is kept where it matters. All operations on one object go to the same worker. Objects that admission of others
//! depends on (namespaces and other cluster-scoped objects, ServiceAccounts, LimitRanges, ResourceQuotas) are applied
//! by the dispatcher itself before it continues; before a namespace is deleted, all workers finish. Queues are short:
//! if the API server does not keep up, the dispatcher waits, and the measured lateness shows it.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use serde_json::Value;
use sk_core::{ObjectKey, ObjectRef, SimTime, SmolStr};
use sk_store::trace::{Trace, TraceError};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};

use super::applier::{Done, Namespaces, is_namespace};
use super::context::Context;
use super::counters::Due;
use super::kinds::Kind;
use super::request::Refusal;
use super::virtualise::service_accounts;
use sk_replay::plan::{Action, Operation, Plan, Window};

/// Requests under way at a time. An API server answers an apply in 5 to 10 ms, so these make about 2,000 a second.
const WORKERS: usize = 16;
/// Operations that wait for one worker: 16 × 32 objects of 10 KB are 5 MB.
const QUEUE: usize = 32;
/// Operations read from the trace before they are due: 256 objects of 10 KB are 2.5 MB.
const READ_AHEAD: usize = 256;

/// Operations of one worker that wait for objects that are going: 16 × 64 of 10 KB are 10 MB. A worker that has more
/// waits for them.
const MAX_WAITING: usize = 64;

/// Core kinds with namespaces that admission looks at when other objects come.
const LOOKED_AT: [&str; 3] = ["LimitRange", "ResourceQuota", "ServiceAccount"];

/// How a replay ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// At the end of its window.
    Whole,
    /// Earlier, because somebody asked.
    Stopped,
}

/// Something for a worker.
enum Work {
    Do(Box<Task>),
    /// Everything before this is done when it is answered.
    Flush(oneshot::Sender<()>),
}

struct Task {
    due: Due,
    /// As the trace calls it.
    object: ObjectRef,
    kind: Kind,
    /// As the run calls it.
    key: ObjectKey,
    action: TaskAction,
}

enum TaskAction {
    Apply { virtualised: Value, replicas: Option<i64> },
    Delete,
}

/// Reads the trace in a thread of its own and hands the operations out one by one.
pub(crate) fn read(trace: Arc<Trace>, window: Window) -> mpsc::Receiver<Result<Operation, TraceError>> {
    let (sender, receiver) = mpsc::channel(READ_AHEAD);
    tokio::task::spawn_blocking(move || {
        let records = match trace.records() {
            Ok(records) => records,
            Err(error) => return drop(sender.blocking_send(Err(error))),
        };
        for operation in Plan::new(records, trace.config(), window) {
            if sender.blocking_send(operation).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Replays all operations and waits for the end of the window.
pub(crate) async fn replay(
    context: &Arc<Context>,
    mut operations: mpsc::Receiver<Result<Operation, TraceError>>,
    end: SimTime,
) -> Result<Ended, TraceError> {
    let mut dispatcher = Dispatcher::new(context.clone());
    loop {
        let operation = tokio::select! {
            biased;
            () = context.stop.asked() => return Ok(dispatcher.abandon().await),
            operation = operations.recv() => operation,
        };
        let Some(operation) = operation.transpose()? else { break };
        tokio::select! {
            biased;
            () = context.stop.asked() => return Ok(dispatcher.abandon().await),
            at = context.pace.until(operation.at) => {
                let due = Due { at, is_event: operation.is_recorded };
                dispatcher.take(operation.action, due).await;
            }
        }
    }
    dispatcher.flush().await;
    tokio::select! {
        biased;
        () = context.stop.asked() => Ok(dispatcher.abandon().await),
        _ = context.pace.until(end) => Ok(Ended::Whole),
    }
}

struct Dispatcher {
    context: Arc<Context>,
    queues: Vec<mpsc::Sender<Work>>,
    workers: JoinSet<()>,
    namespaces: Namespaces,
    /// ServiceAccounts that are there, by the trace's namespace and name.
    accounts: BTreeSet<(SmolStr, SmolStr)>,
    /// CronJobs met so far.
    cron_jobs: BTreeSet<ObjectKey>,
}

impl Dispatcher {
    fn new(context: Arc<Context>) -> Self {
        let mut workers = JoinSet::new();
        let queues = (0..WORKERS).map(|_| {
            let (sender, receiver) = mpsc::channel(QUEUE);
            workers.spawn(work(context.clone(), receiver));
            sender
        });
        let queues = queues.collect();
        Self {
            context,
            queues,
            workers,
            namespaces: Namespaces::default(),
            accounts: BTreeSet::new(),
            cron_jobs: BTreeSet::new(),
        }
    }

    /// Carries an operation out, or gives it to a worker. A refusal is counted, and the run goes on.
    async fn take(&mut self, action: Action, due: Due) {
        let (object, value) = match action {
            Action::Apply { object, content } => (object, Some(content.into_json())),
            Action::Delete(object) => (object, None),
        };
        if let Some(why) = self.context.virtualiser.left_out(&object, value.as_ref()) {
            self.context.counters.left_out(why);
            return self.context.counters.answered(due);
        }
        match self.prepare(due, &object, value).await {
            Ok(Some(task)) => self.give(task).await,
            Ok(None) => self.context.counters.answered(due),
            Err(Refusal::Stopped { .. }) => self.context.counters.count(|totals| totals.abandoned += 1),
            Err(refusal) => {
                self.context.refused(&object, &refusal);
                self.context.counters.answered(due);
            }
        }
    }

    /// Sees to what the operation needs; `None` if it is not to be carried out.
    async fn prepare(&mut self, due: Due, object: &ObjectRef, value: Option<Value>) -> Result<Option<Task>, Refusal> {
        let kind = self.context.kinds.get(&object.gvk, &self.context.retry).await?;
        let object = in_scope(object, &kind);
        let key = self.context.virtualiser.key(&object);
        let Some(value) = value else {
            // What is in a namespace that the run has not made is not the run's to delete.
            let is_ours = object.key.namespace.as_ref().is_none_or(|name| self.namespaces.ours.contains(name));
            return Ok(is_ours.then_some(Task { due, object, kind, key, action: TaskAction::Delete }));
        };
        let templates = self.context.config.template_paths(&object.gvk);
        if let Some(namespace) = &object.key.namespace {
            if !self.has_namespace(namespace).await? {
                let name = self.context.virtualiser.namespace(namespace);
                let why = format!("namespace {name} was there before the run; choose another virtualNsPrefix");
                self.context.counters.left_alone(&object, &why);
                return Ok(None);
            }
            for account in service_accounts(&value, &templates) {
                self.need_account(namespace, &account).await?;
            }
        }
        if object.gvk.group == "batch" && object.gvk.kind == "CronJob" && self.cron_jobs.insert(object.key.clone()) {
            self.context.counters.count(|totals| totals.cron_jobs += 1);
        }
        let replicas = value.pointer("/spec/replicas").and_then(Value::as_i64);
        let virtualised = self.context.virtualiser.object(&object, value, &templates);
        Ok(Some(Task { due, object, kind, key, action: TaskAction::Apply { virtualised, replicas } }))
    }

    async fn give(&mut self, task: Task) {
        if is_namespace(&task.object) {
            return self.change_namespace(task).await;
        }
        let is_core = |kind: &str| task.object.gvk.group.is_empty() && task.object.gvk.kind == kind;
        if is_core("ServiceAccount") {
            let account = (task.object.key.namespace.clone().unwrap_or_default(), task.object.key.name.clone());
            match task.action {
                TaskAction::Apply { .. } => self.accounts.insert(account),
                TaskAction::Delete => self.accounts.remove(&account),
            };
        }
        if !task.kind.is_namespaced || LOOKED_AT.into_iter().any(is_core) {
            perform(&self.context, task).await;
            return;
        }
        let mut hasher = DefaultHasher::new();
        task.object.hash(&mut hasher);
        let queue = usize::try_from(hasher.finish() % WORKERS as u64).unwrap_or(0);
        if self.queues[queue].send(Work::Do(Box::new(task))).await.is_err() {
            // Workers end only when their queue does, or by a panic, which has been reported.
            self.context.counters.count(|totals| totals.abandoned += 1);
        }
    }

    async fn change_namespace(&mut self, task: Task) {
        let name = task.object.key.name.clone();
        match task.action {
            TaskAction::Delete => {
                self.flush().await;
                self.namespaces.ours.remove(&name);
                self.accounts.retain(|(namespace, _)| *namespace != name);
                perform(&self.context, task).await;
            }
            TaskAction::Apply { .. } => {
                let done = perform(&self.context, task).await;
                self.know(&name, done);
            }
        }
    }

    fn know(&mut self, namespace: &SmolStr, done: Option<Done>) {
        match done {
            Some(Done::Yes | Done::Going) => self.namespaces.ours.insert(namespace.clone()),
            Some(Done::LeftAlone) => self.namespaces.foreign.insert(namespace.clone()),
            // Refused: tried again for the next object in it, which then says why.
            None => false,
        };
    }

    /// Makes the namespace if it is not there. `false`: there is one that is not ours.
    async fn has_namespace(&mut self, namespace: &SmolStr) -> Result<bool, Refusal> {
        if self.namespaces.ours.contains(namespace) {
            return Ok(true);
        }
        if !self.namespaces.foreign.contains(namespace) {
            let context = &self.context;
            let value = context.virtualiser.new_namespace(namespace);
            let kind = context.kinds.get(&sk_core::Gvk::new_static("", "v1", "Namespace"), &context.retry).await?;
            let key = ObjectKey::cluster(context.virtualiser.namespace(namespace));
            let done = context.applier().apply(&kind, &key, &value).await?;
            self.know(namespace, Some(done));
        }
        Ok(self.namespaces.ours.contains(namespace))
    }

    /// Admission refuses pods whose ServiceAccount is not there; a trace need not have it.
    async fn need_account(&mut self, namespace: &SmolStr, account: &SmolStr) -> Result<(), Refusal> {
        if !self.accounts.insert((namespace.clone(), account.clone())) {
            return Ok(());
        }
        let context = &self.context;
        let value = context.virtualiser.new_service_account(namespace, account);
        let kind = context.kinds.get(&sk_core::Gvk::new_static("", "v1", "ServiceAccount"), &context.retry).await?;
        let key = ObjectKey::namespaced(context.virtualiser.namespace(namespace), account.clone());
        context.applier().apply(&kind, &key, &value).await.map(drop)
    }

    /// Waits until the workers have done all they were given.
    async fn flush(&mut self) {
        let mut done = Vec::new();
        for queue in &self.queues {
            let (sender, receiver) = oneshot::channel();
            if queue.send(Work::Flush(sender)).await.is_ok() {
                done.push(receiver);
            }
        }
        for receiver in done {
            let _ = receiver.await;
        }
    }

    /// Lets the workers finish what they are at, and no more.
    async fn abandon(mut self) -> Ended {
        self.queues.clear();
        while self.workers.join_next().await.is_some() {}
        Ended::Stopped
    }
}

async fn work(context: Arc<Context>, mut queue: mpsc::Receiver<Work>) {
    let mut lanes = Lanes { context, waiting: BTreeMap::new() };
    while let Some(work) = queue.recv().await {
        match work {
            Work::Do(task) => lanes.take(*task).await,
            Work::Flush(done) => {
                lanes.finish().await;
                let _ = done.send(());
            }
        }
    }
    lanes.finish().await;
}

/// A worker's operations. One whose object cannot be made yet, because an earlier one of that name is still going, waits
/// beside the queue, and so does what follows on the same object; everything else goes on.
struct Lanes {
    context: Arc<Context>,
    waiting: BTreeMap<ObjectRef, JoinHandle<()>>,
}

impl Lanes {
    async fn take(&mut self, task: Task) {
        self.waiting.retain(|_, lane| !lane.is_finished());
        let context = self.context.clone();
        if is_abandoned(&context) {
            return;
        }
        let (object, before) = (task.object.clone(), self.waiting.remove(&task.object));
        if before.is_none() {
            let answer = attempt(&context, &task).await;
            if answer != Ok(Done::Going) {
                settle(&context, task, answer).await;
                return;
            }
        }
        if self.waiting.len() >= MAX_WAITING {
            self.finish().await;
        }
        let lane = tokio::spawn(async move {
            if let Some(before) = before {
                let _ = before.await;
            }
            if !is_abandoned(&context) {
                perform(&context, task).await;
            }
        });
        self.waiting.insert(object, lane);
    }

    /// Waits until nothing waits.
    async fn finish(&mut self) {
        for lane in std::mem::take(&mut self.waiting).into_values() {
            let _ = lane.await;
        }
    }
}

/// Was the run asked to stop? Then one more operation is not carried out.
fn is_abandoned(context: &Context) -> bool {
    let stopped = context.stop.reason().is_some();
    context.counters.count(|totals| totals.abandoned += u64::from(stopped));
    stopped
}

/// Carries one operation out, however long its object takes to be free, and counts what came of it.
async fn perform(context: &Context, task: Task) -> Option<Done> {
    let answer = match attempt(context, &task).await {
        Ok(Done::Going) => match &task.action {
            TaskAction::Apply { virtualised, .. } => context.applier().apply(&task.kind, &task.key, virtualised).await,
            TaskAction::Delete => Ok(Done::Yes),
        },
        answer => answer,
    };
    settle(context, task, answer).await
}

/// Tries one operation once.
async fn attempt(context: &Context, task: &Task) -> Result<Done, Refusal> {
    let Task { object, kind, key, action, .. } = task;
    match action {
        TaskAction::Apply { virtualised, .. } => {
            context.expect_pod(object, key, Some(virtualised));
            context.applier().apply_now(kind, key, virtualised).await
        }
        TaskAction::Delete => {
            context.expect_pod(object, key, None);
            context.applier().delete(kind, key).await
        }
    }
}

/// Counts what came of an operation.
async fn settle(context: &Context, task: Task, answer: Result<Done, Refusal>) -> Option<Done> {
    let Task { due, object, kind, action, .. } = task;
    if !matches!(answer, Err(Refusal::Stopped { .. })) {
        context.counters.answered(due);
    }
    match answer {
        Ok(Done::LeftAlone) => {
            context.counters.left_alone(&object, "an object of that name was there before the run");
            Some(Done::LeftAlone)
        }
        Ok(done) => {
            match action {
                TaskAction::Apply { replicas: None, .. } => {}
                TaskAction::Apply { replicas, .. } => context.tell_replicas(&object, replicas).await,
                TaskAction::Delete => context.tell_replicas(&object, None).await,
            }
            Some(done)
        }
        // Nobody refused it: it did not come to its turn.
        Err(Refusal::Stopped { .. }) => {
            context.counters.count(|totals| totals.abandoned += 1);
            None
        }
        Err(refusal) => {
            if let Some(hint) = refusal.hint(&kind.resource.plural, &kind.resource.group, kind.is_namespaced) {
                context.counters.missing_right(&hint);
            }
            context.refused(&object, &refusal);
            None
        }
    }
}

/// The object as its kind has it: manifests leave `namespace: default` out, and may put a namespace on what has none.
fn in_scope(object: &ObjectRef, kind: &Kind) -> ObjectRef {
    let namespace = match (kind.is_namespaced, &object.key.namespace) {
        (true, None) => Some(SmolStr::new_static("default")),
        (true, namespace) => namespace.clone(),
        (false, _) => None,
    };
    ObjectRef::new(object.gvk.clone(), ObjectKey { namespace, name: object.key.name.clone() })
}
