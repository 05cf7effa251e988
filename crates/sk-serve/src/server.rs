//! The accept loop and the task of each connection. A connection that exceeds its time, or whose slot is needed, is
//! closed without a response; its request is cancelled, unless the handler has spawned a task for it.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;
use tracing::{debug, warn};

use crate::connection::{Connection, Connections, Progress};
use crate::limits::{HEADER_BYTES, Limits, STREAMS};

/// After a failure to accept: out of file descriptors, most likely, and others have to close theirs first.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves until `stop` ends. Then it accepts no connections, finishes requests in progress and returns; dropped, it ends at once.
///
/// `tls` is asked for every connection, so that a new certificate is shown as soon as there is one; `None` is no TLS. Each
/// request has its [`ConnectionHandle`](crate::ConnectionHandle) as an extension.
pub async fn serve<T>(listener: TcpListener, tls: T, routes: Router, limits: Limits, stop: impl Future<Output = ()>)
where
    T: Fn() -> Option<TlsAcceptor>,
{
    let open = Arc::new(Connections::new(limits));
    let (stopping, stopped) = watch::channel(false);
    let mut connections = JoinSet::new();
    let mut stop = pin!(stop);
    loop {
        tokio::select! {
            () = stop.as_mut() => break,
            accepted = listener.accept() => match accepted {
                Ok((socket, from)) => {
                    let connection = open.enter(from.ip());
                    connections.spawn(serve_connection(socket, tls(), routes.clone(), connection, stopped.clone()));
                }
                Err(error) => {
                    warn!(%error, "a connection cannot be accepted");
                    tokio::time::sleep(PAUSE).await;
                }
            },
            Some(ended) = connections.join_next() => report(ended),
        }
    }
    drop(listener);
    stopping.send_replace(true);
    while let Some(ended) = connections.join_next().await {
        report(ended);
    }
}

fn report(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        warn!(%error, "a connection ended badly");
    }
}

/// Serves one connection for as long as it may stay open.
async fn serve_connection(
    socket: TcpStream,
    tls: Option<TlsAcceptor>,
    routes: Router,
    connection: Connection,
    stopped: watch::Receiver<bool>,
) {
    let socket = Noted { stream: socket, progress: connection.progress() };
    tokio::select! {
        () = connection.expired() => debug!("closing a connection that was idle for too long, or whose slot is needed"),
        () = handshake(socket, tls, routes, &connection, stopped) => {}
    }
}

async fn handshake(
    socket: Noted,
    tls: Option<TlsAcceptor>,
    routes: Router,
    connection: &Connection,
    stopped: watch::Receiver<bool>,
) {
    match tls {
        None => serve_requests(socket, routes, connection, stopped).await,
        Some(acceptor) => match acceptor.accept(socket).await {
            Ok(stream) => serve_requests(stream, routes, connection, stopped).await,
            Err(error) => debug!(%error, "a handshake failed"),
        },
    }
}

async fn serve_requests<S>(stream: S, routes: Router, connection: &Connection, mut stopped: watch::Receiver<bool>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let handle = connection.handle();
    let service = service_fn(move |mut request: http::Request<Incoming>| {
        let active = handle.begin_request();
        request.extensions_mut().insert(handle.clone());
        let response = routes.clone().oneshot(request.map(Body::new));
        async move {
            let response: Result<Response, Infallible> = response.await;
            drop(active);
            response
        }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().max_buf_size(HEADER_BYTES);
    builder.http2().max_concurrent_streams(STREAMS);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let told_to_stop = async {
        // A server that is gone has stopped, too.
        let _ = stopped.wait_for(|stopped| *stopped).await;
    };
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = told_to_stop => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        debug!(error, "a connection was interrupted");
    }
}

/// A socket that notes when something passes.
struct Noted {
    stream: TcpStream,
    progress: Progress,
}

impl AsyncRead for Noted {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if read.is_ready() {
            self.progress.note();
        }
        read
    }
}

impl AsyncWrite for Noted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        if written.is_ready() {
            self.progress.note();
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
