//! Checks the user's permissions with SelfSubjectAccessReviews.

use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use kube::api::{Api, PostParams};

use super::Cluster;

/// Something that one may or may not do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Right {
    pub(crate) verb: &'static str,
    pub(crate) group: &'static str,
    pub(crate) resource: &'static str,
    pub(crate) subresource: &'static str,
    /// Only of the object of this name, unless it is empty.
    pub(crate) of: &'static str,
    /// In the namespace of the installation, or everywhere.
    pub(crate) namespaced: bool,
}

impl Right {
    /// A right in the namespace of the installation: `pods/portforward`, in the core group.
    pub(crate) const fn in_namespace(verb: &'static str, resource: &'static str, subresource: &'static str) -> Self {
        Self { verb, group: "", resource, subresource, of: "", namespaced: true }
    }

    /// A right everywhere, on a resource of a group.
    pub(crate) const fn everywhere(verb: &'static str, group: &'static str, resource: &'static str) -> Self {
        Self { verb, group, resource, subresource: "", of: "", namespaced: false }
    }

    /// Only for the object of this name.
    pub(crate) const fn of(self, name: &'static str) -> Self {
        Self { of: name, ..self }
    }

    /// `create pods/portforward`
    pub(crate) fn name(&self) -> String {
        let slash = if self.subresource.is_empty() { "" } else { "/" };
        let dot = if self.group.is_empty() { "" } else { "." };
        format!("{} {}{dot}{}{slash}{}", self.verb, self.resource, self.group, self.subresource)
    }

    /// Does the server let us?
    pub(crate) async fn is_granted(&self, cluster: &Cluster) -> Result<bool, kube::Error> {
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let attributes = ResourceAttributes {
            verb: text(self.verb),
            group: text(self.group),
            resource: text(self.resource),
            subresource: text(self.subresource),
            name: text(self.of),
            namespace: self.namespaced.then(|| cluster.namespace.clone()),
            ..ResourceAttributes::default()
        };
        let spec = SelfSubjectAccessReviewSpec { resource_attributes: Some(attributes), ..Default::default() };
        let review = SelfSubjectAccessReview { spec, ..Default::default() };
        let api: Api<SelfSubjectAccessReview> = Api::all(cluster.client.clone());
        let answer = api.create(&PostParams::default(), &review).await?;
        Ok(answer.status.is_some_and(|status| status.allowed))
    }
}
