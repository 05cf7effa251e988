//! The controller and drivers, killed with SIGKILL at random moments: every simulation still ends, with a reason, and
//! nothing stays behind. Several are always in line, so that a killing may come into a turn, a start, a run or an end.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use kube::ResourceExt;
use kube::api::ListParams;
use serde_json::json;
use sk_api::simulation::State;
use sk_ctrl::install::Options;

use crate::lab::Lab;

/// Killings of the controller; drivers that are killed come on top.
const KILLINGS: u64 = 20;
/// A simulation takes about two seconds, and so does a controller's start with all that it sees to.
const LATEST_MS: u64 = 2500;
/// Simulations that are kept in line.
const IN_LINE: usize = 3;

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_random_moments_every_simulation_ends_with_a_reason_and_nothing_stays() {
    let lab = Lab::start(Options::default()).await;
    let mut controller = lab.controller().await;
    let before = lab.settled().await;
    let random = RandomState::new();
    let mut victims = BTreeMap::new();
    let (mut made, mut moments) = (0, Vec::new());
    for killing in 0..KILLINGS {
        for _ in unfinished(&lab).await..IN_LINE {
            let name = format!("victim-{made}");
            // Every fourth driver is killed too.
            let doomed = made % 4 == 3;
            let (image, end) =
                if doomed { ("driver:killed", State::Failed) } else { ("driver:short", State::Finished) };
            lab.simulate(&name, image, &json!({})).await;
            victims.insert(name, end);
            made += 1;
        }
        let moment = random.hash_one(killing) % LATEST_MS;
        moments.push(moment);
        tokio::time::sleep(Duration::from_millis(moment)).await;
        controller.kill().await;
        // Some are deleted while no controller is there, wherever they stand.
        let deleted = if killing % 5 == 4 { victims.pop_last() } else { None };
        let deletion = async {
            if let Some((name, _)) = deleted {
                lab.delete(&name).await;
            }
        };
        let start = lab.controller();
        (controller, ()) = tokio::join!(start, deletion);
    }
    for (name, wanted) in victims {
        let status = lab.ends(&name).await;
        assert_eq!(status.state, Some(wanted), "{name}, killed after {moments:?} ms: {status:?}");
        assert!(status.reason.is_some() && status.message.is_some(), "{status:?}");
    }
    lab.assert_nothing_left(&before).await;
    lab.assert_nothing_was_forbidden();
}

async fn unfinished(lab: &Lab) -> usize {
    let all = lab.simulations().list(&ListParams::default()).await.expect("Simulations can be listed");
    let ended = |state: Option<State>| state.is_some_and(State::is_final);
    let waits = all.iter().filter(|one| !ended(one.status.as_ref().and_then(|status| status.state)));
    waits.map(ResourceExt::name_any).count()
}
