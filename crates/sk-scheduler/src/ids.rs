//! Dense ids: indexes, never names. [`super::Cluster`] assigns them; an id is stable for as long as its object exists.

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// As an index into a column.
            pub const fn index(self) -> usize {
                self.0 as usize
            }

            #[allow(dead_code, reason = "ids that an interner hands out are not made of an index")]
            pub(crate) fn from_index(index: usize) -> Self {
                Self(u32::try_from(index).expect("fewer than four billion of anything fit in memory"))
            }
        }
    };
}

id!(
    /// A node's slot. A node that comes back under its name within one scheduling cycle keeps it.
    NodeId
);
id!(
    /// A pod.
    PodId
);
id!(
    /// A [`super::PodClass`]: pods with equal classes are alike to every plugin.
    ClassId
);
id!(
    /// The part of a class that plugins look at which compare one pod with one node. Pods of a StatefulSet differ in
    /// their labels and so in class, but not in shape.
    ShapeId
);
id!(
    /// An extended resource, a huge page size and the like.
    ResourceId
);
id!(
    /// A label key that divides nodes into domains.
    KeyId
);
