//! The encoding of a fact: a tag, then its fields in order, with numbers as varints. Names and uids repeat from entry to
//! entry; compression removes that, so no entry refers to an earlier one.
//!
//! The encoding belongs to the format version of a segment. A new field means a new version, and the decoder of the old
//! version stays.

use std::collections::BTreeMap;

use bytes::Bytes;
use sk_core::{Gvk, ObjectKey, ObjectRef, OwnerReference, SimTime, SmolStr, StableHash, TemplateId};

use super::fact::{Applied, Attribution, Deleted, Fact, Link, PodFacts, Watched};
use crate::trace::{Gap, Wait};
use crate::varint::{self, Corrupt, Cursor};

mod tag {
    /// Until version 3: [`APPLIED`], and the hash of its spec before the body.
    pub(super) const APPLIED_HASHED: u8 = 1;
    pub(super) const DELETED: u8 = 2;
    pub(super) const LINK: u8 = 3;
    pub(super) const UNLINKED: u8 = 4;
    pub(super) const POD: u8 = 5;
    pub(super) const NODE: u8 = 6;
    pub(super) const NODE_GONE: u8 = 7;
    pub(super) const GAP: u8 = 8;
    pub(super) const WATCHED: u8 = 9;
    /// Since version 2.
    pub(super) const LOST: u8 = 10;
    /// Since version 3: [`WATCHED`], and until when everything was seen.
    pub(super) const WATCHED_UNTIL: u8 = 11;
    /// Since version 4.
    pub(super) const APPLIED: u8 = 12;
    /// [`POD`], and what its containers ended with, because they failed.
    pub(super) const FAILED_POD: u8 = 13;
}

/// Appends a fact.
pub(super) fn put(out: &mut Vec<u8>, fact: &Fact) {
    match fact {
        Fact::Applied(applied) => {
            put_applied(out, &applied.object, &applied.uid, &applied.owners, &applied.body);
        }
        Fact::Deleted(deleted) => {
            out.push(tag::DELETED);
            put_ref(out, &deleted.object);
            varint::put_text(out, &deleted.uid);
        }
        Fact::Link(link) => put_link(out, link),
        Fact::Unlinked(uid) => {
            out.push(tag::UNLINKED);
            varint::put_text(out, uid);
        }
        Fact::Pod(pod) => put_pod(out, pod),
        Fact::Node(node, Some(body)) => put_node(out, node, body),
        Fact::Node(node, None) => {
            out.push(tag::NODE_GONE);
            varint::put_text(out, node);
        }
        Fact::Gap(gap) => put_gap(out, gap),
        Fact::Watched(Watched { kind, version, seen }) => put_watched(out, kind, version, *seen),
        Fact::Lost(gvk) => put_lost(out, gvk),
    }
}

/// Reads what [`put`] wrote; bytes that are left over are damage.
pub(super) fn read(bytes: &[u8]) -> Result<Fact, Corrupt> {
    let mut cursor = Cursor::new(bytes);
    let tag = cursor.bytes(1)?[0];
    let fact = match tag {
        tag::APPLIED => Fact::Applied(read_applied(&mut cursor, |_| Ok(()))?),
        // The hash says nothing that the body does not say.
        tag::APPLIED_HASHED => Fact::Applied(read_applied(&mut cursor, |cursor| read_hash(cursor).map(drop))?),
        tag::DELETED => Fact::Deleted(Deleted { object: read_ref(&mut cursor)?, uid: cursor.text()?.into() }),
        tag::LINK => Fact::Link(read_link(&mut cursor)?),
        tag::UNLINKED => Fact::Unlinked(cursor.text()?.into()),
        tag::POD => Fact::Pod(Box::new(read_pod(&mut cursor)?)),
        tag::FAILED_POD => {
            let pod = read_pod(&mut cursor)?;
            Fact::Pod(Box::new(PodFacts { exit_code: Some(read_exit_code(&mut cursor)?), ..pod }))
        }
        tag::NODE => Fact::Node(cursor.text()?.into(), Some(read_bytes(&mut cursor)?)),
        tag::NODE_GONE => Fact::Node(cursor.text()?.into(), None),
        tag::GAP => Fact::Gap(read_gap(&mut cursor)?),
        tag::WATCHED => Fact::Watched(read_watched(&mut cursor)?),
        tag::WATCHED_UNTIL => {
            let watched = read_watched(&mut cursor)?;
            Fact::Watched(Watched { seen: Some(read_time(&mut cursor)?), ..watched })
        }
        tag::LOST => Fact::Lost(read_gvk(&mut cursor)?),
        _ => return Err(Corrupt("an entry has an unknown type")),
    };
    if cursor.is_empty() { Ok(fact) } else { Err(Corrupt("an entry is longer than its contents")) }
}

pub(super) fn put_applied(out: &mut Vec<u8>, object: &ObjectRef, uid: &str, owners: &[OwnerReference], body: &[u8]) {
    out.push(tag::APPLIED);
    put_ref(out, object);
    varint::put_text(out, uid);
    put_owners(out, owners);
    put_bytes(out, body);
}

/// Reads an object, with what stands before its body passed over.
fn read_applied(
    cursor: &mut Cursor<'_>,
    pass_over: impl FnOnce(&mut Cursor<'_>) -> Result<(), Corrupt>,
) -> Result<Applied, Corrupt> {
    let (object, uid, owners) = (read_ref(cursor)?, cursor.text()?.into(), read_owners(cursor)?);
    pass_over(cursor)?;
    Ok(Applied { object, uid, owners, body: read_bytes(cursor)? })
}

pub(super) fn put_link(out: &mut Vec<u8>, link: &Link) {
    out.push(tag::LINK);
    put_ref(out, &link.object);
    varint::put_text(out, &link.uid);
    put_owners(out, &link.owners);
}

fn read_link(cursor: &mut Cursor<'_>) -> Result<Link, Corrupt> {
    Ok(Link { object: read_ref(cursor)?, uid: cursor.text()?.into(), owners: read_owners(cursor)? })
}

pub(super) fn put_node(out: &mut Vec<u8>, node: &str, body: &[u8]) {
    out.push(tag::NODE);
    varint::put_text(out, node);
    put_bytes(out, body);
}

pub(super) fn put_gap(out: &mut Vec<u8>, gap: &Gap) {
    out.push(tag::GAP);
    put_time(out, gap.from);
    put_time(out, gap.to);
    put_option(out, gap.kind.as_ref(), put_gvk);
    varint::put_text(out, &gap.reason);
}

fn read_gap(cursor: &mut Cursor<'_>) -> Result<Gap, Corrupt> {
    Ok(Gap {
        from: read_time(cursor)?,
        to: read_time(cursor)?,
        kind: read_option(cursor, read_gvk)?,
        reason: cursor.text()?.into(),
    })
}

pub(super) fn put_watched(out: &mut Vec<u8>, gvk: &Gvk, version: &str, seen: Option<SimTime>) {
    out.push(if seen.is_some() { tag::WATCHED_UNTIL } else { tag::WATCHED });
    put_gvk(out, gvk);
    varint::put_text(out, version);
    if let Some(seen) = seen {
        put_time(out, seen);
    }
}

fn read_watched(cursor: &mut Cursor<'_>) -> Result<Watched, Corrupt> {
    Ok(Watched { kind: read_gvk(cursor)?, version: cursor.text()?.into(), seen: None })
}

pub(super) fn put_lost(out: &mut Vec<u8>, gvk: &Gvk) {
    out.push(tag::LOST);
    put_gvk(out, gvk);
}

pub(super) fn put_pod(out: &mut Vec<u8>, pod: &PodFacts) {
    out.push(if pod.exit_code.is_some() { tag::FAILED_POD } else { tag::POD });
    varint::put_text(out, &pod.uid);
    put_key(out, &pod.pod);
    put_owners(out, &pod.owners);
    varint::put_len(out, pod.attributions.len());
    pod.attributions.iter().for_each(|attribution| put_attribution(out, attribution));
    put_option(out, pod.pod_hash.as_ref(), |out, hash| out.extend_from_slice(&hash.get().to_le_bytes()));
    put_time(out, pod.created);
    for time in [pod.scheduled, pod.started, pod.finished, pod.deleted] {
        put_option(out, time.as_ref(), |out, time| put_time(out, *time));
    }
    out.push(u8::from(pod.guessed));
    put_option(out, pod.node.as_ref(), |out, node| varint::put_text(out, node));
    varint::put_len(out, pod.waits.len());
    for wait in &pod.waits {
        put_time(out, wait.at);
        varint::put_text(out, &wait.reason);
        varint::put_text(out, &wait.message);
    }
    varint::put_len(out, pod.requests.len());
    for (resource, quantity) in &pod.requests {
        varint::put_text(out, resource);
        varint::put_text(out, quantity);
    }
    if let Some(code) = pod.exit_code {
        out.extend_from_slice(&code.to_le_bytes());
    }
}

fn read_exit_code(cursor: &mut Cursor<'_>) -> Result<i32, Corrupt> {
    let bytes = cursor.bytes(4)?.try_into().map_err(|_| Corrupt("an exit code has not four bytes"))?;
    Ok(i32::from_le_bytes(bytes))
}

fn read_pod(cursor: &mut Cursor<'_>) -> Result<PodFacts, Corrupt> {
    Ok(PodFacts {
        uid: cursor.text()?.into(),
        pod: read_key(cursor)?,
        owners: read_owners(cursor)?,
        attributions: read_list(cursor, read_attribution)?,
        pod_hash: read_option(cursor, read_hash)?,
        created: read_time(cursor)?,
        scheduled: read_option(cursor, read_time)?,
        started: read_option(cursor, read_time)?,
        finished: read_option(cursor, read_time)?,
        deleted: read_option(cursor, read_time)?,
        guessed: read_flag(cursor)?,
        exit_code: None,
        node: read_option(cursor, |cursor| Ok(cursor.text()?.into()))?,
        waits: read_list(cursor, read_wait)?,
        requests: read_requests(cursor)?,
    })
}

fn put_attribution(out: &mut Vec<u8>, attribution: &Attribution) {
    put_ref(out, &attribution.owner);
    varint::put_text(out, &attribution.uid);
    put_option(out, attribution.template.as_ref(), |out, template| {
        varint::put_text(out, template.path.as_str());
        out.extend_from_slice(&template.hash.get().to_le_bytes());
    });
    out.push(u8::from(attribution.track_lifecycle));
}

fn read_attribution(cursor: &mut Cursor<'_>) -> Result<Attribution, Corrupt> {
    let template = |cursor: &mut Cursor<'_>| {
        let path = cursor.text()?.parse().map_err(|_| Corrupt("the place of a template is not a JSON pointer"))?;
        Ok(TemplateId { path, hash: read_hash(cursor)? })
    };
    Ok(Attribution {
        owner: read_ref(cursor)?,
        uid: cursor.text()?.into(),
        template: read_option(cursor, template)?,
        track_lifecycle: read_flag(cursor)?,
    })
}

fn read_wait(cursor: &mut Cursor<'_>) -> Result<Wait, Corrupt> {
    Ok(Wait { at: read_time(cursor)?, reason: cursor.text()?.into(), message: cursor.text()?.into() })
}

fn read_requests(cursor: &mut Cursor<'_>) -> Result<BTreeMap<SmolStr, String>, Corrupt> {
    let pairs = read_list(cursor, |cursor| Ok((cursor.text()?.into(), cursor.text()?.into())))?;
    Ok(pairs.into_iter().collect())
}

fn put_owners(out: &mut Vec<u8>, owners: &[OwnerReference]) {
    varint::put_len(out, owners.len());
    for owner in owners {
        put_gvk(out, &owner.gvk);
        varint::put_text(out, &owner.name);
        varint::put_text(out, &owner.uid);
        out.push(u8::from(owner.controller) | u8::from(owner.block_owner_deletion) << 1);
    }
}

fn read_owners(cursor: &mut Cursor<'_>) -> Result<Vec<OwnerReference>, Corrupt> {
    read_list(cursor, |cursor| {
        let (gvk, name, uid) = (read_gvk(cursor)?, cursor.text()?.into(), cursor.text()?.into());
        let flags = cursor.bytes(1)?[0];
        Ok(OwnerReference { gvk, name, uid, controller: flags & 1 != 0, block_owner_deletion: flags & 2 != 0 })
    })
}

fn put_ref(out: &mut Vec<u8>, object: &ObjectRef) {
    put_gvk(out, &object.gvk);
    put_key(out, &object.key);
}

fn read_ref(cursor: &mut Cursor<'_>) -> Result<ObjectRef, Corrupt> {
    Ok(ObjectRef::new(read_gvk(cursor)?, read_key(cursor)?))
}

fn put_gvk(out: &mut Vec<u8>, gvk: &Gvk) {
    varint::put_text(out, &gvk.group);
    varint::put_text(out, &gvk.version);
    varint::put_text(out, &gvk.kind);
}

fn read_gvk(cursor: &mut Cursor<'_>) -> Result<Gvk, Corrupt> {
    Ok(Gvk { group: cursor.text()?.into(), version: cursor.text()?.into(), kind: cursor.text()?.into() })
}

fn put_key(out: &mut Vec<u8>, key: &ObjectKey) {
    put_option(out, key.namespace.as_ref(), |out, namespace| varint::put_text(out, namespace));
    varint::put_text(out, &key.name);
}

fn read_key(cursor: &mut Cursor<'_>) -> Result<ObjectKey, Corrupt> {
    let namespace = read_option(cursor, |cursor| Ok(cursor.text()?.into()))?;
    Ok(ObjectKey { namespace, name: cursor.text()?.into() })
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    varint::put_len(out, bytes.len());
    out.extend_from_slice(bytes);
}

fn read_bytes(cursor: &mut Cursor<'_>) -> Result<Bytes, Corrupt> {
    let len = cursor.len()?;
    Ok(Bytes::copy_from_slice(cursor.bytes(len)?))
}

fn put_time(out: &mut Vec<u8>, time: SimTime) {
    varint::put_signed(out, time.as_micros());
}

fn read_time(cursor: &mut Cursor<'_>) -> Result<SimTime, Corrupt> {
    Ok(SimTime::from_micros(cursor.i64()?))
}

fn read_hash(cursor: &mut Cursor<'_>) -> Result<StableHash, Corrupt> {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(cursor.bytes(8)?);
    Ok(StableHash::new(u64::from_le_bytes(bytes)))
}

fn read_flag(cursor: &mut Cursor<'_>) -> Result<bool, Corrupt> {
    Ok(cursor.bytes(1)?[0] != 0)
}

fn put_option<T>(out: &mut Vec<u8>, value: Option<&T>, put: impl FnOnce(&mut Vec<u8>, &T)) {
    out.push(u8::from(value.is_some()));
    if let Some(value) = value {
        put(out, value);
    }
}

fn read_option<T>(
    cursor: &mut Cursor<'_>,
    read: impl FnOnce(&mut Cursor<'_>) -> Result<T, Corrupt>,
) -> Result<Option<T>, Corrupt> {
    if read_flag(cursor)? { read(cursor).map(Some) } else { Ok(None) }
}

/// A list whose elements take at least a byte each; `count` has checked that there are so many.
fn read_list<T>(
    cursor: &mut Cursor<'_>,
    mut read: impl FnMut(&mut Cursor<'_>) -> Result<T, Corrupt>,
) -> Result<Vec<T>, Corrupt> {
    let count = cursor.count()?;
    // Not `with_capacity`: an element in memory is larger than the byte that it takes at least.
    let mut list = Vec::new();
    for _ in 0..count {
        list.push(read(cursor)?);
    }
    Ok(list)
}
