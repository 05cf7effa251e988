//! The controller and drivers, killed with SIGKILL at random moments: every simulation still ends, with a reason, and
//! nothing stays behind.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use serde_json::json;
use sk_api::simulation::State;
use sk_ctrl::install::Options;

use crate::lab::Lab;

/// Killings of the controller; drivers that are killed come on top.
const KILLINGS: u64 = 16;
/// One simulation takes a few seconds from its creation to its end; a killing comes somewhere in them.
const LATEST_MS: u64 = 4000;

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_random_moments_every_simulation_ends_with_a_reason_and_nothing_stays() {
    let lab = Lab::start(Options::default()).await;
    let controller = lab.controller().await;
    let before = lab.settled().await;
    let mut controller = Some(controller);
    let random = RandomState::new();
    for killing in 0..KILLINGS {
        // Every fourth driver is killed too.
        let (image, wanted) =
            if killing % 4 == 3 { ("driver:killed", State::Failed) } else { ("driver:short", State::Finished) };
        let name = format!("victim-{killing}");
        lab.simulate(&name, image, &json!({})).await;
        let moment = random.hash_one(killing) % LATEST_MS;
        tokio::time::sleep(Duration::from_millis(moment)).await;
        controller.take().expect("a controller").kill().await;
        controller = Some(lab.controller().await);
        let status = lab.ends(&name).await;
        assert_eq!(status.state, Some(wanted), "killed after {moment} ms: {status:?}");
        assert!(status.reason.is_some() && status.message.is_some(), "{status:?}");
        // Some are deleted while the controller is away.
        if killing % 5 == 4 {
            lab.delete(&name).await;
        }
    }
    lab.assert_nothing_left(&before).await;
    lab.assert_nothing_was_forbidden();
}
