//! Resource quantities as the scheduler counts them: whole millicores and bytes, and a map for everything else.

use std::collections::BTreeMap;

use smol_str::SmolStr;

use crate::Quantity;

/// A `ResourceList`: how much of each resource, as Kubernetes writes it.
pub type Amounts = BTreeMap<SmolStr, Quantity>;

/// What a pod asks for in all, as the scheduler sums it (`component-helpers/resource/helpers.go`, 1.36), from what each
/// container asks for. Of an init container it also matters whether it is a sidecar.
pub fn pod_requests(
    containers: impl IntoIterator<Item = Amounts>,
    init_containers: impl IntoIterator<Item = (Amounts, bool)>,
    pod_level: &Amounts,
    overhead: &Amounts,
) -> Amounts {
    let mut total = Amounts::new();
    containers.into_iter().for_each(|wanted| add(&mut total, &wanted));
    // While an init container runs, so do the sidecars before it; the pod needs the largest such moment.
    let (mut sidecars, mut largest_init) = (Amounts::new(), Amounts::new());
    for (mut wanted, is_sidecar) in init_containers {
        if is_sidecar {
            add(&mut total, &wanted);
            add(&mut sidecars, &wanted);
            wanted.clone_from(&sidecars);
        } else {
            add(&mut wanted, &sidecars);
        }
        raise(&mut largest_init, &wanted);
    }
    raise(&mut total, &largest_init);
    for (name, amount) in pod_level {
        if name == "cpu" || name == "memory" || name.starts_with("hugepages-") {
            total.insert(name.clone(), *amount);
        }
    }
    add(&mut total, overhead);
    total
}

fn add(total: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        total.entry(name.clone()).and_modify(|sum| *sum += *amount).or_insert(*amount);
    }
}

fn raise(total: &mut Amounts, other: &Amounts) {
    for (name, amount) in other {
        total.entry(name.clone()).and_modify(|most| *most = (*most).max(*amount)).or_insert(*amount);
    }
}

/// How much of each resource; the scheduler's `framework.Resource` without the pod count.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Resources {
    /// CPU in thousandths of a core.
    pub cpu_milli: i64,
    /// Memory in bytes.
    pub memory: i64,
    /// Local disk in bytes.
    pub ephemeral_storage: i64,
    /// Extended resources, huge pages and the like, in units.
    pub scalars: BTreeMap<SmolStr, i64>,
}

impl Resources {
    /// CPU in millicores and memory in bytes, nothing else.
    pub fn new(cpu_milli: i64, memory: i64) -> Self {
        Self { cpu_milli, memory, ..Self::default() }
    }

    /// From a `ResourceList`: CPU in millicores and the rest in whole units, each rounded up. The count of pods that a
    /// node may hold is not a resource that pods ask for and is left out.
    pub fn from_quantities(list: &Amounts) -> Self {
        let mut resources = Self::default();
        for (name, quantity) in list {
            match name.as_str() {
                "cpu" => resources.cpu_milli = quantity.milli_value(),
                "memory" => resources.memory = quantity.value(),
                "ephemeral-storage" => resources.ephemeral_storage = quantity.value(),
                "pods" => {}
                _ => drop(resources.scalars.insert(name.clone(), quantity.value())),
            }
        }
        resources
    }

    /// Is nothing asked for at all?
    pub fn is_zero(&self) -> bool {
        self.cpu_milli == 0 && self.memory == 0 && self.ephemeral_storage == 0 && self.scalars.values().all(|&n| n == 0)
    }

    /// Adds `other` to each resource.
    pub fn add(&mut self, other: &Self) {
        self.combine(other, i64::saturating_add);
    }

    /// Takes `other` off each resource.
    pub fn sub(&mut self, other: &Self) {
        self.combine(other, i64::saturating_sub);
    }

    /// Raises each resource to what `other` has.
    pub fn max(&mut self, other: &Self) {
        self.combine(other, Ord::max);
    }

    fn combine(&mut self, other: &Self, with: impl Fn(i64, i64) -> i64) {
        self.cpu_milli = with(self.cpu_milli, other.cpu_milli);
        self.memory = with(self.memory, other.memory);
        self.ephemeral_storage = with(self.ephemeral_storage, other.ephemeral_storage);
        for (name, &amount) in &other.scalars {
            let mine = self.scalars.entry(name.clone()).or_default();
            *mine = with(*mine, amount);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_can_be_taken_off_again() {
        let mut used = Resources::new(500, 1 << 30);
        let mut pod = Resources::new(250, 1 << 20);
        pod.scalars.insert("example.com/gpu".into(), 2);
        used.add(&pod);
        assert_eq!((used.cpu_milli, used.scalars["example.com/gpu"]), (750, 2));
        used.sub(&pod);
        assert_eq!((used.cpu_milli, used.memory), (500, 1 << 30));
        assert!(!used.is_zero());
    }
}
