//! Request bodies with limits of size and time; reads a refused body to its end, so that the client sees the response.

use std::time::Duration;

use axum::body::{Body, BodyDataStream, Bytes};
use futures::StreamExt;

/// How long a caller may take to send a body that is read whole. A few hundred kilobytes take less on any network.
const BODY_LIMIT: Duration = Duration::from_secs(10);
/// How long a caller who was refused is still listened to; until then it has read why.
const HEAR_OUT_LIMIT: Duration = Duration::from_secs(10);
/// How much of it is read and thrown away: more than the buffers of both ends, at a gigabit for as long as that.
const HEAR_OUT_BYTES: usize = 1 << 30;

/// Why a body was not taken.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// More than it may have.
    #[error("the body is larger than {limit} bytes")]
    TooLarge {
        /// The most.
        limit: usize,
    },
    /// The body did not arrive in time.
    #[error("the body did not arrive within {} s", BODY_LIMIT.as_secs())]
    TooSlow,
    /// The caller stopped in the middle.
    #[error("the body was interrupted: {0}")]
    BrokenOff(String),
}

/// Reads a body whole. One that is too large is heard out first: a connection that is closed with bytes unread takes the
/// answer with it.
pub async fn read(body: Body, limit: usize) -> Result<Bytes, BodyError> {
    let mut stream = body.into_data_stream();
    let read = tokio::time::timeout(BODY_LIMIT, read_from(&mut stream, limit)).await;
    let read = read.map_err(|_| BodyError::TooSlow).flatten();
    if matches!(read, Err(BodyError::TooLarge { .. })) {
        hear_out(stream).await;
    }
    read
}

async fn read_from(stream: &mut BodyDataStream, limit: usize) -> Result<Bytes, BodyError> {
    let mut bytes = Vec::new();
    while let Some(chunk) = stream.next().await {
        let chunk = chunk.map_err(|error| BodyError::BrokenOff(error.to_string()))?;
        if bytes.len() + chunk.len() > limit {
            return Err(BodyError::TooLarge { limit });
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes.into())
}

/// Reads what is still coming from a caller who is being refused, and forgets it.
pub async fn hear_out(mut stream: BodyDataStream) {
    let rest = async {
        let mut heard = 0;
        while let Some(Ok(chunk)) = stream.next().await {
            heard += chunk.len();
            if heard > HEAR_OUT_BYTES {
                return;
            }
        }
    };
    if tokio::time::timeout(HEAR_OUT_LIMIT, rest).await.is_err() {
        tracing::debug!("a refused caller went on for too long");
    }
}

#[cfg(test)]
mod tests {
    use futures::stream;

    use super::*;

    fn chunks(count: usize) -> Body {
        let chunks = (0..count).map(|_| Ok::<_, std::io::Error>(vec![b'x'; 10]));
        Body::from_stream(stream::iter(chunks.collect::<Vec<_>>()))
    }

    #[tokio::test]
    async fn a_body_is_read_up_to_its_bound_and_no_further() {
        assert_eq!(read(chunks(3), 30).await.unwrap().len(), 30);
        assert!(matches!(read(chunks(4), 39).await, Err(BodyError::TooLarge { limit: 39 })));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_come_is_not_waited_for() {
        let never = Body::from_stream(stream::pending::<Result<Vec<u8>, std::io::Error>>());
        assert!(matches!(read(never, 10).await, Err(BodyError::TooSlow)));
    }
}
