//! Type table: ObjectMeta, label selectors and DeleteOptions (`apimachinery/pkg/apis/meta/v1`, 1.36).

use super::{Struct, Type as T, always, nullable, omitted, pointer};

#[rustfmt::skip]
pub(super) static CONDITION: Struct = Struct::new("Condition", &[
    always("type", T::String), always("status", T::String), omitted("observedGeneration", T::Int64),
    nullable("lastTransitionTime", T::Time), always("reason", T::String), always("message", T::String),
]);

#[rustfmt::skip]
pub(super) static CUSTOM: Struct = Struct::new("", &[
    always("metadata", T::Struct(&OBJECT_META)),
]);

#[rustfmt::skip]
pub(super) static DELETE_OPTIONS: Struct = Struct::new("DeleteOptions", &[
    pointer("gracePeriodSeconds", T::Int64), pointer("preconditions", T::Struct(&PRECONDITIONS)),
    pointer("orphanDependents", T::Bool), pointer("propagationPolicy", T::String),
    omitted("dryRun", T::List(&T::String)),
    pointer("ignoreStoreReadErrorWithClusterBreakingPotential", T::Bool),
]);

#[rustfmt::skip]
pub(super) static LABEL_SELECTOR: Struct = Struct::atomic("LabelSelector", &[
    omitted("matchLabels", T::Map(&T::String)),
    omitted("matchExpressions", T::List(&T::Struct(&LABEL_SELECTOR_REQUIREMENT))),
]);

#[rustfmt::skip]
pub(super) static LABEL_SELECTOR_REQUIREMENT: Struct = Struct::new("LabelSelectorRequirement", &[
    always("key", T::String), always("operator", T::String), omitted("values", T::List(&T::String)),
]);

#[rustfmt::skip]
pub(super) static MANAGED_FIELDS_ENTRY: Struct = Struct::new("ManagedFieldsEntry", &[
    omitted("manager", T::String), omitted("operation", T::String), omitted("apiVersion", T::String),
    pointer("time", T::Time), omitted("fieldsType", T::String), pointer("fieldsV1", T::Any),
    omitted("subresource", T::String),
]);

#[rustfmt::skip]
pub(super) static OBJECT_META: Struct = Struct::new("ObjectMeta", &[
    omitted("name", T::String), omitted("generateName", T::String), omitted("namespace", T::String),
    omitted("selfLink", T::String), omitted("uid", T::String), omitted("resourceVersion", T::String),
    omitted("generation", T::Int64), pointer("creationTimestamp", T::Time),
    pointer("deletionTimestamp", T::Time), pointer("deletionGracePeriodSeconds", T::Int64),
    omitted("labels", T::Map(&T::String)), omitted("annotations", T::Map(&T::String)),
    omitted("ownerReferences", T::List(&T::Struct(&OWNER_REFERENCE))).merge("uid"),
    omitted("finalizers", T::List(&T::String)).merge(""),
    omitted("managedFields", T::List(&T::Struct(&MANAGED_FIELDS_ENTRY))),
]);

#[rustfmt::skip]
pub(super) static OWNER_REFERENCE: Struct = Struct::atomic("OwnerReference", &[
    always("apiVersion", T::String), always("kind", T::String), always("name", T::String),
    always("uid", T::String), pointer("controller", T::Bool), pointer("blockOwnerDeletion", T::Bool),
]);

#[rustfmt::skip]
pub(super) static PRECONDITIONS: Struct = Struct::new("Preconditions", &[
    pointer("uid", T::String), pointer("resourceVersion", T::String),
]);
