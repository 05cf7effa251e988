//! The server's side of field managers: keeps and updates `managedFields` while it handles a client's request.

use super::{MANAGED_FIELDS, Writing, updated};
use crate::server::ApiServer;
use crate::{ApiError, Object, admission};

impl ApiServer {
    /// An update keeps the managers until the changed fields are known.
    pub(crate) fn keep_managers(&self, wanted: &mut Object, stored: &Object) {
        match self.writing.as_deref() {
            None => {}
            Some(Writing::Applied(managers)) => wanted.set_managers(managers.clone()),
            Some(Writing::By(_)) => {
                let known = stored.meta.rest.as_ref().and_then(|rest| rest.get(MANAGED_FIELDS)).cloned();
                wanted.set_managers(known.unwrap_or_default());
            }
        }
    }

    /// Updates the managed fields if the request has a field manager. For a new object, before admission: what
    /// admission adds has no manager.
    pub(crate) fn manage(&mut self, wanted: &mut Object, stored: Option<&Object>) -> Result<(), ApiError> {
        let managers = match self.writing.as_deref() {
            None => return Ok(()),
            Some(Writing::Applied(managers)) => managers.clone(),
            Some(Writing::By(writer)) => {
                let mut new = wanted.to_json();
                if stored.is_none() && self.admission.is_strict {
                    new = admission::defaulted(wanted)?;
                }
                let kind = self.admission.definitions.managed(&wanted.gvk);
                updated(&kind, stored.map(Object::to_json).as_ref(), &new, writer)
            }
        };
        wanted.set_managers(managers);
        Ok(())
    }
}
