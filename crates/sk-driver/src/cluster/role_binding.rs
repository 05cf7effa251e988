//! Binds the driver's ClusterRole in each namespace of a run.
//!
//! An installation allows the driver's ServiceAccount to write workloads nowhere. It may create namespaces for a run
//! and bind the ClusterRole `sk-driver-replay` there, so a driver can write only where its runs are. The RoleBinding is
//! deleted with the namespace. If the account may write already (an older installation, or a person's own kubeconfig
//! without a controller), nothing is bound.

use std::time::{Duration, Instant};

use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::authorization::v1::SelfSubjectAccessReview;
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::Client;
use kube::api::{Api, PostParams};
use serde_json::json;
use sk_api::simulation::names;

use super::request::{Refusal, RetryPolicy, with_retries};

/// How long a new RoleBinding may take to become effective: the API server watches them, usually for a few milliseconds.
const EFFECTIVE_WITHIN: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(10);

/// How a ServiceAccount is called as a user: `system:serviceaccount:NAMESPACE:NAME`.
const ACCOUNT_PREFIX: &str = "system:serviceaccount:";

/// The ServiceAccount that is bound in new namespaces.
#[derive(Clone, Debug, Default)]
pub(crate) struct RoleBinder {
    /// The driver's own account; `None` if nothing is to be bound.
    account: Option<Account>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Account {
    namespace: String,
    name: String,
}

impl RoleBinder {
    /// For a driver that a controller has started: the API server tells which account it has.
    pub(crate) async fn of_account(client: &Client, retry: &RetryPolicy) -> Result<Self, Refusal> {
        let api: Api<SelfSubjectReview> = Api::all(client.clone());
        let (parameters, question) = (PostParams::default(), SelfSubjectReview::default());
        let answer = with_retries(retry, || api.create(&parameters, &question)).await?;
        let user = answer.status.and_then(|status| status.user_info).and_then(|user| user.username);
        Ok(Self { account: user.as_deref().and_then(account) })
    }

    /// Binds the role in a new namespace, unless the driver may already write there, and waits until that is effective.
    pub(crate) async fn bind(&self, client: &Client, retry: &RetryPolicy, namespace: &str) -> Result<(), Refusal> {
        let Some(account) = &self.account else { return Ok(()) };
        if may_write(client, retry, namespace).await? {
            return Ok(());
        }
        let api: Api<RoleBinding> = Api::namespaced(client.clone(), namespace);
        let (parameters, binding) = (PostParams::default(), binding(account, namespace));
        match with_retries(retry, || api.create(&parameters, &binding)).await {
            Err(refusal) if !refusal.is_already_there() => return Err(refusal),
            // The first try's answer was lost.
            _ => {}
        }
        let began = Instant::now();
        while !may_write(client, retry, namespace).await? {
            if began.elapsed() >= EFFECTIVE_WITHIN {
                let last =
                    format!("the RoleBinding in {namespace} is not effective after {} s", EFFECTIVE_WITHIN.as_secs());
                return Err(Refusal::NoAnswer { last });
            }
            if !retry.pause(POLL).await {
                return Err(Refusal::Stopped { last: "waiting for the RoleBinding".to_owned() });
            }
        }
        Ok(())
    }
}

/// May the driver create pods there? If so it may do the rest, which is in the same role.
async fn may_write(client: &Client, retry: &RetryPolicy, namespace: &str) -> Result<bool, Refusal> {
    let attributes = json!({"verb": "create", "resource": "pods", "namespace": namespace});
    let question: SelfSubjectAccessReview =
        serde_json::from_value(json!({"spec": {"resourceAttributes": attributes}})).expect("this is a question");
    let api: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let parameters = PostParams::default();
    let answer = with_retries(retry, || api.create(&parameters, &question)).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

fn binding(account: &Account, namespace: &str) -> RoleBinding {
    serde_json::from_value(json!({
        "metadata": {"name": names::DRIVER_REPLAY_ROLE, "namespace": namespace},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": names::DRIVER_REPLAY_ROLE,
        },
        "subjects": [{"kind": "ServiceAccount", "name": account.name, "namespace": account.namespace}],
    }))
    .expect("this is a binding")
}

/// The account that a user is, if it is one.
fn account(user: &str) -> Option<Account> {
    let (namespace, name) = user.strip_prefix(ACCOUNT_PREFIX)?.split_once(':')?;
    Some(Account { namespace: namespace.to_owned(), name: name.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_account_is_bound_and_it_is_bound_to_nothing_but_replaying() {
        assert_eq!(account("alice"), None);
        let driver = account("system:serviceaccount:simkube:sk-driver").unwrap();
        let binding = binding(&driver, "virtual-shop");
        assert_eq!(binding.role_ref.name, "sk-driver-replay");
        let subject = &binding.subjects.unwrap()[0];
        assert_eq!((subject.namespace.as_deref(), subject.name.as_str()), (Some("simkube"), "sk-driver"));
    }
}
