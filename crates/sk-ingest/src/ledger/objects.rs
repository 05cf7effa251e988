//! Recorded objects, and objects that only link pods to them: emits a fact when one is added, changed or deleted.

use std::sync::Arc;

use sk_core::{ObjectKey, ObjectRef, OwnerReference, SimTime, SmolStr};
use sk_store::log::{Applied, Deleted, Fact, Link};

use super::versions::Versions;
use super::{Epoch, KindId, Ledger, Place};
use crate::rules::body_hash;
use crate::sighting::Tracked;
use crate::uid::Uid;

/// An object that lives.
#[derive(Debug)]
pub(super) struct Object {
    pub(super) uid: Uid,
    pub(super) owners: Arc<Vec<OwnerReference>>,
    content: Content,
    seen: Epoch,
}

#[derive(Debug)]
enum Content {
    /// Not recorded itself.
    Link,
    /// Recorded.
    Body {
        hash: u128,
        /// The pod templates it has had; nothing if its kind has none.
        versions: Option<Box<Versions>>,
    },
}

impl Object {
    /// Does it only link pods to their owners?
    pub(super) fn is_link(&self) -> bool {
        matches!(self.content, Content::Link)
    }

    /// The pod templates it has had, if it is recorded.
    pub(super) fn versions(&self) -> Option<&Versions> {
        match &self.content {
            Content::Body { versions, .. } => versions.as_deref(),
            Content::Link => None,
        }
    }
}

impl Ledger {
    pub(super) fn object_applied(
        &mut self,
        now: SimTime,
        object: &ObjectRef,
        uid: &SmolStr,
        owners: &[OwnerReference],
        tracked: Option<Tracked>,
        out: &mut Vec<Fact>,
    ) {
        let id = self.kinds.id(&object.gvk);
        let place = (id, object.key.clone());
        let seen = self.kinds.epoch(id);
        let own_uid = Uid::new(uid);
        let is_other = |known: &Object| known.uid != own_uid || known.is_link() != tracked.is_none();
        if self.objects.get(&place).is_some_and(is_other) {
            self.object_deleted(&place, None, out);
        }
        let is_new = !self.objects.contains_key(&place);
        if is_new {
            self.by_uid.insert(own_uid.clone(), Place::Object(id, object.key.clone()));
            self.counts.links += usize::from(tracked.is_none());
        }
        let shared = self.interners.owners.share(owners, owners.to_vec());
        let known = self.objects.entry(place).or_insert_with(|| Object {
            uid: own_uid.clone(),
            owners: shared.clone(),
            content: Content::Link,
            seen,
        });
        known.seen = seen;
        let news = match tracked {
            Some(tracked) => known.take_body(now, object, uid, &shared, &tracked),
            None if is_new || *known.owners != *shared => {
                let owners = owners.to_vec();
                Some((Fact::Link(Link { object: object.clone(), uid: uid.clone(), owners }), is_new))
            }
            None => None,
        };
        let Some((fact, matters_to_pods)) = news else { return };
        let before = std::mem::replace(&mut known.owners, shared);
        out.push(fact);
        self.refer(owners);
        if !is_new {
            self.unrefer(&before, out);
        }
        self.ask_for_unknown(object.key.namespace.as_ref(), owners);
        if matters_to_pods {
            self.owner_arrived(now, &own_uid, out);
        }
    }

    /// Something is gone. With a uid: only if it is that one.
    pub(super) fn object_deleted(&mut self, place: &(KindId, ObjectKey), uid: Option<&Uid>, out: &mut Vec<Fact>) {
        let is_meant = |known: &Object| uid.is_none_or(|uid| known.uid == *uid);
        if !self.objects.get(place).is_some_and(is_meant) {
            return;
        }
        let Some(gone) = self.objects.remove(place) else { return };
        self.by_uid.remove(&gone.uid);
        let uid = gone.uid.to_smol_str();
        if gone.is_link() {
            self.counts.links -= 1;
            out.push(Fact::Unlinked(uid));
        } else {
            let object = ObjectRef::new(self.kinds.gvk(place.0).clone(), place.1.clone());
            out.push(Fact::Deleted(Deleted { object, uid }));
        }
        self.unrefer(&gone.owners, out);
    }

    /// What a list of its kind did not bring is gone.
    pub(super) fn unseen_objects_vanish(&mut self, id: KindId, epoch: Epoch, out: &mut Vec<Fact>) {
        let first = ObjectKey { namespace: None, name: SmolStr::default() };
        let of_kind = self.objects.range((id, first)..).take_while(|((kind, _), _)| *kind == id);
        let unseen: Vec<_> =
            of_kind.filter(|(_, object)| object.seen != epoch).map(|(place, _)| place.clone()).collect();
        unseen.iter().for_each(|place| self.object_deleted(place, None, out));
    }

    /// Takes in a recorded object that the log knows.
    pub(super) fn restore_object(&mut self, object: &ObjectRef, uid: &str, owners: &[OwnerReference], body: &[u8]) {
        let with_templates = self.rules.of(&object.gvk).filter(|rules| !rules.templates.is_empty());
        let versions = with_templates.map(|rules| Box::new(Versions::restored(body, &rules.templates)));
        self.restore_as(object, uid, owners, Content::Body { hash: body_hash(body), versions });
    }

    /// Takes in a link of a kind that is watched.
    pub(super) fn restore_link(&mut self, link: &Link) {
        self.counts.links += 1;
        self.restore_as(&link.object, &link.uid, &link.owners, Content::Link);
    }

    fn restore_as(&mut self, object: &ObjectRef, uid: &str, owners: &[OwnerReference], content: Content) {
        let id = self.kinds.id(&object.gvk);
        let uid = Uid::new(uid);
        let owners = self.interners.owners.share(owners, owners.to_vec());
        self.refer(&owners);
        self.by_uid.insert(uid.clone(), Place::Object(id, object.key.clone()));
        self.objects.insert((id, object.key.clone()), Object { uid, owners, content, seen: 0 });
    }

    /// Has the owners of what was taken in asked for that nobody watches and the log does not know.
    pub(super) fn restore_lookups(&mut self) {
        let owned = self.objects.iter().filter(|(_, object)| !object.owners.is_empty());
        let owned: Vec<_> =
            owned.map(|((_, key), object)| (key.namespace.clone(), Arc::clone(&object.owners))).collect();
        owned.iter().for_each(|(namespace, owners)| self.ask_for_unknown(namespace.as_ref(), owners));
    }
}

impl Object {
    /// Takes in a body; the fact if it is another one, and whether its templates are.
    fn take_body(
        &mut self,
        now: SimTime,
        object: &ObjectRef,
        uid: &SmolStr,
        owners: &[OwnerReference],
        tracked: &Tracked,
    ) -> Option<(Fact, bool)> {
        let is_new = self.is_link();
        if let Content::Body { hash, .. } = &self.content
            && *hash == tracked.body_hash
        {
            return None;
        }
        if is_new {
            self.content = Content::Body { hash: 0, versions: None };
        }
        let Content::Body { hash, versions } = &mut self.content else { return None };
        *hash = tracked.body_hash;
        let has_templates = versions.is_some() || !tracked.templates.is_empty();
        let new_templates =
            has_templates && versions.get_or_insert_default().see(now, &tracked.body, &tracked.templates);
        let fact = Fact::Applied(Applied {
            object: object.clone(),
            uid: uid.clone(),
            owners: owners.to_vec(),
            body: tracked.body.clone(),
        });
        Some((fact, is_new || new_templates))
    }
}
