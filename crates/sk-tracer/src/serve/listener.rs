//! Connections, with TLS where there is a certificate. Handshakes run beside each other and are bounded in time and
//! number, so that a caller who says nothing keeps nobody else waiting.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{Instant, Sleep};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Connections at a time: exports are few, probes and scrapes short. 256 with 64 KiB of buffers each are 16 MiB.
const MAX_CONNECTIONS: usize = 256;
/// How long a handshake may take.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);
/// How long a caller may take to say what it wants.
const SILENCE_LIMIT: Duration = Duration::from_secs(10);
/// How long nothing may happen on a connection after that. The longest exports take minutes in which nothing is sent.
const IDLE_LIMIT: Duration = Duration::from_secs(900);
/// After a failure to accept, such as too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// Accepts connections.
pub(super) struct Connections {
    listener: TcpListener,
    acceptor: Option<TlsAcceptor>,
    handshakes: JoinSet<io::Result<(Connection, SocketAddr)>>,
    room: Arc<Semaphore>,
}

impl Connections {
    pub(super) fn new(listener: TcpListener, config: Option<Arc<rustls::ServerConfig>>) -> Self {
        let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        Self { listener, acceptor: config.map(TlsAcceptor::from), handshakes: JoinSet::new(), room }
    }

    fn greet(&mut self, stream: TcpStream, from: SocketAddr, permit: OwnedSemaphorePermit) {
        let acceptor = self.acceptor.clone();
        self.handshakes.spawn(async move {
            let stream = match acceptor {
                None => Stream::Plain(stream),
                Some(acceptor) => {
                    let greeted = tokio::time::timeout(HANDSHAKE_LIMIT, acceptor.accept(stream)).await;
                    Stream::Tls(Box::new(greeted.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??))
                }
            };
            let silence = Box::pin(tokio::time::sleep(SILENCE_LIMIT));
            Ok((Connection { stream, silence, _permit: permit }, from))
        });
    }
}

impl Listener for Connections {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let room = Arc::clone(&self.room);
            let next = async {
                let permit = room.acquire_owned().await.expect("nobody closes the semaphore");
                (permit, self.listener.accept().await)
            };
            tokio::select! {
                Some(greeted) = self.handshakes.join_next() => match greeted {
                    Ok(Ok(connection)) => return connection,
                    Ok(Err(error)) => tracing::debug!(%error, "a handshake failed"),
                    Err(error) => tracing::warn!(%error, "a handshake ended badly"),
                },
                (permit, accepted) = next => match accepted {
                    Ok((stream, from)) => self.greet(stream, from, permit),
                    Err(error) => {
                        tracing::warn!(%error, "a connection cannot be accepted");
                        tokio::time::sleep(PAUSE).await;
                    }
                },
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

/// One connection, which takes one of the bounded places until it is dropped, or until nothing happens on it.
pub(super) struct Connection {
    stream: Stream,
    /// When it has been silent for too long.
    silence: Pin<Box<Sleep>>,
    _permit: OwnedSemaphorePermit,
}

enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Connection {
    fn something_happened(&mut self) {
        self.silence.as_mut().reset(Instant::now() + IDLE_LIMIT);
    }
}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let read = match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Stream::Tls(stream) => Pin::new(stream).poll_read(cx, buffer),
        };
        match read {
            Poll::Pending if self.silence.as_mut().poll(cx).is_ready() => {
                Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
            }
            Poll::Pending => Poll::Pending,
            ready => {
                self.something_happened();
                ready
            }
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Stream::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        };
        if written.is_ready() {
            self.something_happened();
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
