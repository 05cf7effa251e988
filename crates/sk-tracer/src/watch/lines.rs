//! Splits the bytes of a watch into lines, without copying a line that has arrived complete.
//!
//! Kubernetes writes one JSON document per line. The reader waits for more bytes only when no complete line is left,
//! which is also the moment to send the batch.

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use futures::FutureExt;
use futures::io::{AsyncBufRead, AsyncBufReadExt};

/// The longest line. etcd takes objects of at most 1.5 MiB (`--max-request-bytes`), stored as protobuf; as JSON, with
/// every byte of binary data in base64 and every quote escaped, that is at most six times as much.
const MAX_LINE_BYTES: usize = 16 << 20;

/// How much is gathered before it is handed out: a batch of the store, and a quarter of a megabyte stays in caches.
const GATHERED_BYTES: usize = 256 << 10;

/// A reader of lines.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    stream: R,
    buffer: Vec<u8>,
    /// Where the first line begins that has not been handed out.
    start: usize,
    /// Up to where no end of a line was found.
    searched: usize,
    /// What went wrong after that which has arrived.
    failure: Option<io::Error>,
}

impl<R: AsyncBufRead + Unpin> Lines<R> {
    /// A reader of this stream.
    pub(crate) fn new(stream: R) -> Self {
        Self { stream, buffer: Vec::new(), start: 0, searched: 0, failure: None }
    }

    /// The next line that has arrived whole, without its end.
    pub(crate) fn arrived(&mut self) -> Option<&[u8]> {
        let Some(length) = memchr::memchr(b'\n', &self.buffer[self.searched..]) else {
            self.searched = self.buffer.len();
            return None;
        };
        let (from, to) = (self.start, self.searched + length);
        self.start = to + 1;
        self.searched = self.start;
        Some(&self.buffer[from..to])
    }

    /// Waits for more bytes; `false` when there are none to come. Part of a line at the end of a stream is no line.
    ///
    /// What has come besides is taken too: a chunk of HTTP is one event, and what is handed out together wakes the store
    /// once. The connection hands over one chunk at a time, so it gets a turn between them; when that brings nothing, its
    /// socket is empty.
    pub(crate) async fn more(&mut self) -> io::Result<bool> {
        // Whoever gave up on the last call while it gathered has not seen what it had.
        let is_unseen = self.searched < self.buffer.len();
        if !is_unseen && !self.wait().await? {
            return Ok(false);
        }
        let mut had_a_turn = false;
        while self.buffer.len() < GATHERED_BYTES {
            match self.stream.fill_buf().now_or_never() {
                Some(Ok(arrived)) if !arrived.is_empty() => {
                    let length = arrived.len();
                    self.buffer.extend_from_slice(arrived);
                    self.stream.consume_unpin(length);
                    had_a_turn = false;
                }
                None if !had_a_turn => {
                    give_a_turn().await;
                    had_a_turn = true;
                }
                None => break,
                // What came before a failure is handed out first.
                Some(Err(failure)) => {
                    self.failure = Some(failure);
                    break;
                }
                // The end is for the next call.
                Some(Ok(_)) => break,
            }
        }
        Ok(true)
    }

    async fn wait(&mut self) -> io::Result<bool> {
        self.buffer.drain(..self.start);
        self.searched -= self.start;
        self.start = 0;
        if self.buffer.len() > MAX_LINE_BYTES {
            let problem = format!("a line is longer than {MAX_LINE_BYTES} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
        }
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let arrived = self.stream.fill_buf().await?;
        let length = arrived.len();
        self.buffer.extend_from_slice(arrived);
        self.stream.consume_unpin(length);
        Ok(length > 0)
    }
}

/// Lets the tasks run that are ready, without a look at sockets and timers (which `tokio::task::yield_now` has).
async fn give_a_turn() {
    let mut given = false;
    poll_fn(|context| {
        if std::mem::replace(&mut given, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
mod tests {
    use futures::TryStreamExt;
    use futures::io::BufReader;

    use super::*;

    /// The lines of a text that arrives in pieces of `piece` bytes.
    fn lines(text: &str, piece: usize) -> Vec<String> {
        futures::executor::block_on(async {
            let mut lines = Lines::new(BufReader::with_capacity(piece, text.as_bytes()));
            let mut found = Vec::new();
            loop {
                while let Some(line) = lines.arrived() {
                    found.push(String::from_utf8(line.to_vec()).unwrap());
                }
                if !lines.more().await.unwrap() {
                    return found;
                }
            }
        })
    }

    #[test]
    fn lines_are_the_same_however_the_bytes_arrive() {
        let text = "{\"a\":1}\n\n{\"longer\":\"line\"}\nx\n";
        for piece in 1..=text.len() + 1 {
            assert_eq!(lines(text, piece), ["{\"a\":1}", "", "{\"longer\":\"line\"}", "x"], "pieces of {piece}");
        }
    }

    #[test]
    fn what_a_broken_connection_leaves_of_a_line_is_no_line() {
        assert_eq!(lines("whole\nhal", 4), ["whole"]);
    }

    #[test]
    fn what_has_come_is_gathered_and_a_failure_after_it_is_told_next() {
        let pieces = [Ok("a\n"), Ok("b\nc"), Ok("\nd\n"), Err(io::Error::from(io::ErrorKind::ConnectionReset))];
        let stream = futures::stream::iter(pieces).into_async_read();
        futures::executor::block_on(async {
            let mut lines = Lines::new(stream);
            assert!(lines.more().await.unwrap());
            let found: Vec<_> = std::iter::from_fn(|| lines.arrived().map(<[u8]>::to_vec)).collect();
            assert_eq!(found, [b"a", b"b", b"c", b"d"], "four lines of three pieces, at once");
            assert_eq!(lines.more().await.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
        });
    }

    #[tokio::test]
    async fn chunks_that_another_task_hands_over_one_at_a_time_come_together_and_outlive_a_caller_who_gave_up() {
        let (mut send, receive) = futures::channel::mpsc::channel::<io::Result<String>>(0);
        let sender = tokio::spawn(async move {
            for number in 0..100 {
                futures::SinkExt::send(&mut send, Ok(format!("{number}\n"))).await.unwrap();
            }
            send
        });
        let mut lines = Lines::new(receive.into_async_read());
        // It gathers, and has to be asked a second time.
        assert!(lines.more().now_or_never().is_none());
        tokio::task::yield_now().await;
        assert!(lines.more().now_or_never().is_none());
        assert!(lines.more().await.unwrap());
        let found: Vec<_> = std::iter::from_fn(|| lines.arrived().map(<[u8]>::to_vec)).collect();
        let all: Vec<_> = (0..100).map(|number| number.to_string().into_bytes()).collect();
        assert_eq!(found, all);
        sender.await.unwrap();
    }

    #[test]
    fn a_line_without_an_end_is_refused_before_it_fills_the_memory() {
        let endless = vec![b'x'; MAX_LINE_BYTES + (1 << 20)];
        let refused = futures::executor::block_on(async {
            let mut lines = Lines::new(BufReader::with_capacity(1 << 16, endless.as_slice()));
            loop {
                assert!(lines.arrived().is_none());
                match lines.more().await {
                    Ok(true) => {}
                    Ok(false) => return None,
                    Err(error) => return Some(error.kind()),
                }
            }
        });
        assert_eq!(refused, Some(io::ErrorKind::InvalidData));
    }
}
