//! SIGINT and SIGTERM: the first one asks the work to stop, a later one ends the process.
//!
//! `timeout -s INT 1h skctl record` sends its signal twice at once, to the process and to its group; with a wrapper that
//! passes Ctrl-C on to a child that already got it, it is the same. Signals that come within [`SAME`] are therefore one
//! interruption: otherwise the second would end the process before it has written what it recorded.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::low_level::{emulate_default_handler, pipe};

/// Nobody presses Ctrl-C, waits for something to happen and presses it again in less.
const SAME: Duration = Duration::from_millis(500);

/// Sets `interrupted` at the first signal. While it is set, the next signal ends the process.
pub(super) fn watch(interrupted: &Arc<AtomicBool>) -> io::Result<()> {
    let last = Arc::new(Mutex::new(None));
    for signal in [SIGINT, SIGTERM] {
        let (mut arrived, sent) = UnixStream::pair()?;
        pipe::register(signal, sent)?;
        let (interrupted, last) = (interrupted.clone(), last.clone());
        let wait = move || {
            while arrived.read_exact(&mut [0]).is_ok() {
                if is_new(&last, Instant::now()) && interrupted.swap(true, Ordering::Relaxed) {
                    // It fails for signals that have no default action, which these have.
                    let _ = emulate_default_handler(signal);
                }
            }
        };
        thread::Builder::new().name("signals".to_owned()).spawn(wait)?;
    }
    Ok(())
}

/// Is a signal that comes `now` another interruption than the last one?
fn is_new(last: &Mutex<Option<Instant>>, now: Instant) -> bool {
    let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
    let is_new = last.is_none_or(|last| now.saturating_duration_since(last) >= SAME);
    if is_new {
        *last = Some(now);
    }
    is_new
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_at_once_are_one_interruption_and_a_later_one_is_another() {
        let (last, start) = (Mutex::new(None), Instant::now());
        let heard: Vec<bool> =
            [0, 1, 499, 500, 900, 1_100].map(|ms| is_new(&last, start + Duration::from_millis(ms))).into();
        assert_eq!(heard, [true, false, false, true, false, true]);
    }
}
