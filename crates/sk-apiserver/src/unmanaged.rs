//! In place of `managed` in a build without the feature `rest`: no request has a field manager.

use crate::server::ApiServer;
use crate::{ApiError, Object};

/// The field of metadata that says who manages what.
pub(crate) const MANAGED_FIELDS: &str = "managedFields";

/// There is no client that writes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Writing {}

impl ApiServer {
    /// No object has managers to keep.
    pub(crate) fn keep_managers(&self, _wanted: &mut Object, _stored: &Object) {}

    /// No request has a manager.
    pub(crate) fn manage(&mut self, _wanted: &mut Object, _stored: Option<&Object>) -> Result<(), ApiError> {
        Ok(())
    }
}
