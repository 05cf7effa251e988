//! Families and what becomes of them, a line each.

use super::*;

/// A thing that owns what it says.
struct Owned {
    object: ObjectRef,
    uid: String,
    owners: Vec<OwnerReference>,
    tracked: bool,
    asked: Asked,
}

fn judge(things: &[Owned]) -> Vec<Verdict> {
    let lent = things.iter().map(|thing| Thing {
        object: &thing.object,
        uid: &thing.uid,
        owners: &thing.owners,
        tracked: thing.tracked,
        asked: thing.asked,
    });
    Family::new(lent.collect()).judge().map(|(_, verdict)| verdict).collect()
}

/// `KIND name [<- KIND name]…`, with `!` before what a filter removes, `?` before what none asks for and `~` before what is
/// not recorded. Everything is in namespace `n` except kinds that begin with `C`. Uids are kind and name, unless an owner is written `KIND name?`:
/// then the reference has a uid that nobody has.
fn thing(text: &str) -> Owned {
    let (own, owners) = text.split_once(" <- ").unwrap_or((text, ""));
    let asked = match own.chars().next() {
        Some('!') => Asked::Without,
        Some('?') => Asked::NotFor,
        _ => Asked::For,
    };
    let tracked = !own.starts_with('~');
    let own = own.trim_start_matches(['!', '?', '~']);
    let object = object(own);
    let owners = owners.split(" <- ").filter(|owner| !owner.is_empty()).map(reference).collect();
    Owned { object, uid: own.into(), owners, tracked, asked }
}

fn object(text: &str) -> ObjectRef {
    let (kind, name) = text.split_once(' ').unwrap();
    let namespace = (!kind.starts_with('C')).then_some("n");
    let gvk = sk_core::Gvk { group: "apps".into(), version: "v1".into(), kind: kind.into() };
    ObjectRef::new(gvk, sk_core::ObjectKey { namespace: namespace.map(Into::into), name: name.into() })
}

fn reference(text: &str) -> OwnerReference {
    let (text, uid) = match text.strip_suffix('?') {
        Some(text) => (text, "of somebody before"),
        None => (text, text),
    };
    let ObjectRef { gvk, key } = object(text);
    OwnerReference { gvk, name: key.name, uid: uid.into(), controller: false, block_owner_deletion: false }
}

#[test]
fn what_is_exported_depends_on_who_owns_it() {
    use Verdict::{Below, Exported, Filtered, OfDaemonSet, Untracked};
    let cases: &[(&str, &[(&str, Verdict)])] = &[
        ("an object without owners is exported", &[("Deployment web", Exported)]),
        (
            "what an exported one owns is not",
            &[("Deployment web", Exported), ("ReplicaSet web-1 <- Deployment web", Below)],
        ),
        (
            "also through what is not recorded",
            &[
                ("Deployment web", Exported),
                ("~ReplicaSet web-1 <- Deployment web", Below),
                ("Pod web-1-x <- ReplicaSet web-1", Below),
            ],
        ),
        ("the owner may come after", &[("Deployment web <- Custom app", Below), ("Custom app", Exported)]),
        (
            "all references are followed, not only the first",
            &[("Job j <- Unknown u <- CronJob c", Below), ("CronJob c", Exported)],
        ),
        ("an unknown owner keeps nothing back", &[("Deployment web <- Unknown app", Exported)]),
        (
            "nor does one that is not recorded and belongs to nobody",
            &[("~ReplicaSet web-1", Untracked), ("Pod web-1-x <- ReplicaSet web-1", Exported)],
        ),
        (
            "an owner is found by name if its uid is not known",
            &[("Deployment web", Exported), ("ReplicaSet web-1 <- Deployment web?", Below)],
        ),
        (
            "and in no namespace if it is not beside",
            &[("Cluster c", Exported), ("Deployment web <- Cluster c?", Below)],
        ),
        (
            "a removed owner takes its descendants with it",
            &[
                ("!Deployment web", Filtered),
                ("~ReplicaSet web-1 <- Deployment web", Filtered),
                ("Pod web-1-x <- ReplicaSet web-1", Filtered),
            ],
        ),
        (
            "even those that another exported one owns",
            &[("!App a", Filtered), ("App b", Exported), ("Job j <- App a <- App b", Filtered)],
        ),
        (
            "one that is not asked for leaves them",
            &[
                ("?Deployment web", Filtered),
                ("ReplicaSet web-1 <- Deployment web", Exported),
                ("~Pod web-1-x <- ReplicaSet web-1", Below),
            ],
        ),
        (
            "also where it stands between",
            &[
                ("Deployment web", Exported),
                ("?ReplicaSet web-1 <- Deployment web", Filtered),
                ("~Pod web-1-x <- ReplicaSet web-1", Below),
            ],
        ),
        (
            "a removed child leaves its owner",
            &[("Deployment web", Exported), ("!ReplicaSet web-1 <- Deployment web", Filtered)],
        ),
        (
            "what a DaemonSet owns is out, known or not",
            &[
                ("Pod a <- DaemonSet d", OfDaemonSet),
                ("Thing t <- Pod a", OfDaemonSet),
                ("DaemonSet e", Exported),
                ("Pod b <- DaemonSet e", OfDaemonSet),
            ],
        ),
        (
            "of two that own each other one is exported",
            &[("App a <- App b", Exported), ("App b <- App a", Below), ("App c <- App b", Below)],
        ),
        ("nobody is above himself", &[("App a <- App a", Exported)]),
        (
            "an object that is there as itself and as something between is itself",
            &[("~Pod p", Untracked), ("Pod p", Exported), ("Thing t <- Pod p", Below)],
        ),
    ];
    for (why, family) in cases {
        let things: Vec<_> = family.iter().map(|(text, _)| thing(text)).collect();
        let expected: Vec<_> = family.iter().map(|(_, verdict)| *verdict).collect();
        assert_eq!(judge(&things), expected, "{why}");
        let (backwards, mut reversed): (Vec<_>, Vec<_>) =
            (things.into_iter().rev().collect(), expected.into_iter().rev().collect());
        let mut judged = judge(&backwards);
        judged.reverse();
        reversed.reverse();
        assert_eq!(judged, reversed, "{why}, whatever the order");
    }
}

#[test]
fn a_long_line_and_a_dense_knot_come_to_an_end() {
    let line: Vec<_> = (0..300).map(|n| thing(&format!("App {n} <- App {}", n + 1))).collect();
    let verdicts = judge(&line);
    assert_eq!(verdicts[299], Verdict::Exported);
    assert_eq!(verdicts[298], Verdict::Below);
    let all: String = (0..30).map(|n| format!(" <- App {n}")).collect();
    let knot: Vec<_> = (0..30).map(|n| thing(&format!("App {n}{all}"))).collect();
    let exported = judge(&knot).into_iter().filter(|verdict| *verdict == Verdict::Exported).count();
    assert_eq!(exported, 1);
}
