//! Are the recorded answers still the real server's? A part of them is asked again.

use sk_testkit::api::{Family, Recorded};
use sk_testkit::recorder::ApiArena;

/// Families that are asked again: about verbs and patches, which touch every part of a server.
const AGAIN: [&str; 2] = ["patches", "verbs"];

#[tokio::test]
async fn the_real_server_answers_as_it_was_recorded() {
    let arena = ApiArena::start().await.unwrap();
    for family in Family::all().unwrap().iter().filter(|family| AGAIN.contains(&family.name.as_str())) {
        let (recorded, now) = (Recorded::named(&family.name).unwrap(), arena.record(family).await.unwrap());
        for (then, now) in recorded.answers.iter().zip(&now.answers) {
            assert_eq!(then, now, "{}: {}", family.name, then.name);
        }
    }
}
