//! A real S3 server over a folder, on loopback; also for the tracer's tests.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::thread;

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use s3s_fs::FileSystem;

/// Serves `folder`, each folder in it a bucket, until the test process ends. Its user is `key`, whose secret is `secret`.
pub(crate) fn serve_s3(folder: &Path) -> SocketAddr {
    serve_s3_on(folder, TcpListener::bind("127.0.0.1:0").unwrap())
}

/// The same where somebody listens already.
#[allow(dead_code, reason = "not every test program chooses the address")]
pub(crate) fn serve_s3_on(folder: &Path, listener: TcpListener) -> SocketAddr {
    let mut service = S3ServiceBuilder::new(FileSystem::new(folder).unwrap());
    service.set_auth(SimpleAuth::from_single("key", "secret"));
    let service = service.build();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            while let Ok((socket, _)) = listener.accept().await {
                let service = service.clone();
                tokio::spawn(async move {
                    let server = auto::Builder::new(TokioExecutor::new());
                    let _ = server.serve_connection(TokioIo::new(socket), service).await;
                });
            }
        });
    });
    address
}
