//! The cluster that a trace is replayed on: where its nodes come from and what they cost. `group` has the node groups.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use sk_core::{Quantity, SmolStr};

use super::error::shown;
use super::group::Group;
use super::schema;
use super::suggest::did_you_mean;
use super::text_or::TextOr;

/// The cluster to replay on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a mapping with `groups`")]
pub struct Cluster {
    /// Where nodes come from. Default: `groups`, the autoscaler decides.
    #[schemars(schema_with = "nodes_schema")]
    pub nodes: Nodes,
    /// What DaemonSets, static pods and untracked pods take on every node. Default: nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "reserved_schema")]
    pub reserved: Option<Reserved>,
    /// The currency of all prices, by its ISO 4217 letters. Default: `USD`.
    #[schemars(regex(pattern = "^[A-Z]{3}$"))]
    pub currency: SmolStr,
    /// The kinds of nodes there are, by name. At least one, unless nodes come from elsewhere.
    pub groups: BTreeMap<SmolStr, Group>,
}

impl Default for Cluster {
    fn default() -> Self {
        Self { nodes: Nodes::Groups, reserved: None, currency: "USD".into(), groups: BTreeMap::new() }
    }
}

/// Where nodes come from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Nodes {
    /// `groups`: the autoscaler adds and removes nodes of the groups.
    #[default]
    Groups,
    /// `recorded`: nodes come and go as they did.
    Recorded,
    /// The name of a YAML file: these nodes, from beginning to end.
    File(String),
}

impl TryFrom<String> for Nodes {
    type Error = String;

    /// A file is told by its ending, so that a mistyped word is not taken for one.
    fn try_from(text: String) -> Result<Self, String> {
        match text.as_str() {
            "groups" => Ok(Self::Groups),
            "recorded" => Ok(Self::Recorded),
            file if [".yaml", ".yml", ".json"].iter().any(|ending| file.ends_with(ending)) => Ok(Self::File(text)),
            _ => Err(format!(
                "`{}` is neither `groups`, `recorded` nor a file that ends in .yaml, .yml or .json{}",
                shown(&text),
                did_you_mean(&text, ["groups", "recorded"])
            )),
        }
    }
}

impl From<Nodes> for String {
    fn from(nodes: Nodes) -> Self {
        match nodes {
            Nodes::Groups => "groups".to_owned(),
            Nodes::Recorded => "recorded".to_owned(),
            Nodes::File(file) => file,
        }
    }
}

/// What is taken on every node before any pod of the trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "TextOr<BTreeMap<SmolStr, Quantity>>", into = "TextOr<BTreeMap<SmolStr, Quantity>>")]
pub enum Reserved {
    /// `recorded`: as much as in the recording.
    Recorded,
    /// So much of each resource.
    Fixed(BTreeMap<SmolStr, Quantity>),
}

impl TryFrom<TextOr<BTreeMap<SmolStr, Quantity>>> for Reserved {
    type Error = String;

    fn try_from(written: TextOr<BTreeMap<SmolStr, Quantity>>) -> Result<Self, String> {
        match written {
            TextOr::Text(text) if text == "recorded" => Ok(Self::Recorded),
            TextOr::Text(text) => {
                let text = shown(&text);
                Err(format!("`{text}` is neither `recorded` nor amounts such as {{cpu: 300m, memory: 800Mi}}"))
            }
            TextOr::Long(amounts) => Ok(Self::Fixed(amounts)),
        }
    }
}

impl From<Reserved> for TextOr<BTreeMap<SmolStr, Quantity>> {
    fn from(reserved: Reserved) -> Self {
        match reserved {
            Reserved::Recorded => Self::Text("recorded".to_owned()),
            Reserved::Fixed(amounts) => Self::Long(amounts),
        }
    }
}

fn nodes_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "pattern": r"^(groups|recorded|.*\.(yaml|yml|json))$",
        "examples": ["groups", "recorded"],
    })
}

fn reserved_schema(generator: &mut SchemaGenerator) -> Schema {
    schema::either(&json_schema!({ "const": "recorded" }), &schema::amounts(generator))
}
