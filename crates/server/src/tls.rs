//! TLS: certificates, and connections that are encrypted.

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// What accepts encrypted connections; another certificate may take the place of its own.
#[derive(Clone)]
pub struct Tls(Arc<RwLock<TlsAcceptor>>);

impl Tls {
    /// With that certificate at first.
    pub fn new(acceptor: TlsAcceptor) -> Self {
        Self(Arc::new(RwLock::new(acceptor)))
    }

    /// What accepts the next connection.
    pub fn acceptor(&self) -> TlsAcceptor {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From the next connection on another certificate is shown.
    pub fn replace(&self, acceptor: TlsAcceptor) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = acceptor;
    }
}

/// What accepts encrypted connections, HTTP/2 and HTTP/1.1, with the chain of certificates and the key of two PEM files.
///
/// # Errors
/// What is wrong with which file.
pub fn acceptor(certificate: &Path, key: &Path) -> Result<TlsAcceptor, String> {
    let of = |path: &Path, why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect)
        .map_err(|error| of(certificate, &error))?;
    if chain.is_empty() {
        return Err(of(certificate, &"it has no certificate in PEM form"));
    }
    let own = PrivateKeyDer::from_pem_file(key).map_err(|error| of(key, &error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, own))
        .map_err(|error| of(key, &error))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
