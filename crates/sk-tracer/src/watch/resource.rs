//! Discovers where a kind is served, and builds its requests. By hand, because the responses are read as bytes.

use http::header::{ACCEPT, ACCEPT_ENCODING};
use kube::{Client, Error};
use sk_cluster::discovery;
use sk_core::{Gvk, ObjectKey};
use url::form_urlencoded::Serializer;

/// Only metadata, of one object and of a list.
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
const JSON: &str = "application/json";

/// A kind as it is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resource {
    /// `/api/v1` or `/apis/group/version`.
    base: String,
    plural: String,
    namespaced: bool,
}

/// How much of each object is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    /// All of it.
    Whole,
    /// Its metadata.
    Metadata,
}

impl Resource {
    /// Discovers a kind; `None` if it is not served.
    pub(crate) async fn find(client: &Client, kind: &Gvk) -> Result<Option<Self>, Error> {
        let found = discovery::find(client, kind).await?;
        Ok(found.map(|served| Self::new(kind, served.resource.plural, served.is_namespaced)))
    }

    fn new(kind: &Gvk, plural: String, namespaced: bool) -> Self {
        let root = if kind.group.is_empty() { "/api" } else { "/apis" };
        Self { base: format!("{root}/{}", kind.api_version()), plural, namespaced }
    }

    /// One page of all objects.
    pub(crate) fn list(&self, depth: Depth, limit: usize, next: &str) -> Result<http::Request<Vec<u8>>, Error> {
        let mut query = Serializer::new(String::new());
        query.append_pair("limit", &limit.to_string());
        if !next.is_empty() {
            query.append_pair("continue", next);
        }
        self.get(&self.collection(), &query.finish(), if depth == Depth::Whole { JSON } else { METADATA_LIST })
    }

    /// All changes after a version, for so many seconds.
    pub(crate) fn watch(&self, depth: Depth, version: &str, seconds: u64) -> Result<http::Request<Vec<u8>>, Error> {
        let mut query = Serializer::new(String::new());
        query.append_pair("watch", "1").append_pair("allowWatchBookmarks", "true");
        query.append_pair("resourceVersion", version).append_pair("timeoutSeconds", &seconds.to_string());
        self.get(&self.collection(), &query.finish(), if depth == Depth::Whole { JSON } else { METADATA })
    }

    /// A list of one object at most, as new as what was acknowledged last: its version is that of the whole storage now.
    pub(crate) fn newest(&self) -> Result<http::Request<Vec<u8>>, Error> {
        self.get(&self.collection(), "limit=1", METADATA_LIST)
    }

    /// Waits until the server's cache has come to a version; one object at most comes back.
    pub(crate) fn not_older_than(&self, version: u64) -> Result<http::Request<Vec<u8>>, Error> {
        let query = format!("limit=1&resourceVersion={version}&resourceVersionMatch=NotOlderThan");
        self.get(&self.collection(), &query, METADATA_LIST)
    }

    /// One object.
    pub(crate) fn one(&self, depth: Depth, key: &ObjectKey) -> Result<http::Request<Vec<u8>>, Error> {
        let encode = |part: &str| url::form_urlencoded::byte_serialize(part.as_bytes()).collect::<String>();
        let name = encode(&key.name);
        let path = match &key.namespace {
            Some(namespace) if self.namespaced => {
                format!("{}/namespaces/{}/{}/{name}", self.base, encode(namespace), self.plural)
            }
            _ => format!("{}/{}/{name}", self.base, self.plural),
        };
        self.get(&path, "", if depth == Depth::Whole { JSON } else { METADATA })
    }

    /// The name by which RBAC knows it.
    pub(crate) fn plural(&self) -> &str {
        &self.plural
    }

    fn collection(&self) -> String {
        format!("{}/{}", self.base, self.plural)
    }

    fn get(&self, path: &str, query: &str, accept: &str) -> Result<http::Request<Vec<u8>>, Error> {
        let uri = if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") };
        // A compressed watch arrives in the compressor's blocks instead of line by line.
        let request = http::Request::get(uri).header(ACCEPT, accept).header(ACCEPT_ENCODING, "identity");
        request.body(Vec::new()).map_err(Error::HttpError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_go_where_kubernetes_serves_the_kind() {
        let pods = Resource::new(&"v1.Pod".parse().unwrap(), "pods".to_owned(), true);
        let watch = pods.watch(Depth::Metadata, "12", 60).unwrap();
        assert_eq!(watch.uri(), "/api/v1/pods?watch=1&allowWatchBookmarks=true&resourceVersion=12&timeoutSeconds=60");
        assert_eq!(watch.headers()[ACCEPT], METADATA);
        let sets = Resource::new(&"apps/v1.ReplicaSet".parse().unwrap(), "replicasets".to_owned(), true);
        assert_eq!(
            sets.list(Depth::Whole, 500, "a/b").unwrap().uri(),
            "/apis/apps/v1/replicasets?limit=500&continue=a%2Fb"
        );
        let one = sets.one(Depth::Metadata, &ObjectKey::namespaced("web", "x y")).unwrap();
        assert_eq!(one.uri(), "/apis/apps/v1/namespaces/web/replicasets/x+y");
    }

    #[test]
    fn a_namespaced_objects_owner_may_be_of_a_kind_without_namespaces() {
        let nodes = Resource::new(&"v1.Node".parse().unwrap(), "nodes".to_owned(), false);
        assert_eq!(nodes.one(Depth::Whole, &ObjectKey::namespaced("web", "a")).unwrap().uri(), "/api/v1/nodes/a");
    }
}
