//! Layers for `tower`: requests to a server, and requests of a client, as calls.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Extensions, Method, Uri};
use tower_layer::Layer;
use tower_service::Service;

use crate::chain::Carrier;
use crate::function::Function;
use crate::future::{Calling, Instrumented, Request};

/// Tells the function of a request.
type Name = dyn Fn(&Method, &Uri, &Extensions) -> Function + Send + Sync;

/// Which function a request is for.
#[derive(Clone)]
enum Naming {
    One(Arc<Function>),
    Each(Arc<Name>),
}

impl Naming {
    fn with<R, B>(&self, request: &http::Request<B>, act: impl FnOnce(&Function) -> R) -> R {
        match self {
            Self::One(function) => act(function),
            Self::Each(name) => act(&name(request.method(), request.uri(), request.extensions())),
        }
    }
}

impl fmt::Debug for Naming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(function) => f.debug_tuple("One").field(function).finish(),
            Self::Each(_) => f.write_str("Each"),
        }
    }
}

macro_rules! layer {
    ($layer:ident, $service:ident, $what:literal) => {
        #[doc = $what]
        #[derive(Clone, Debug)]
        pub struct $layer(Naming);

        impl $layer {
            /// For requests that are all for one function.
            pub fn new(function: &Function) -> Self {
                Self(Naming::One(Arc::new(function.clone())))
            }

            /// For requests whose function follows from method, address and extensions, among which a router may leave its route. Names must not be made of
            /// what differs from request to request.
            pub fn by(name: impl Fn(&Method, &Uri, &Extensions) -> Function + Send + Sync + 'static) -> Self {
                Self(Naming::Each(Arc::new(name)))
            }
        }

        impl<S> Layer<S> for $layer {
            type Service = $service<S>;

            fn layer(&self, inner: S) -> $service<S> {
                $service { inner, naming: self.0.clone() }
            }
        }

        #[doc = concat!("The service of [`", stringify!($layer), "`].")]
        #[derive(Clone, Debug)]
        pub struct $service<S> {
            inner: S,
            naming: Naming,
        }
    };
}

layer!(ServeLayer, Serve, "For servers: the skeleton around what answers a request.");
layer!(CallLayer, CallOut, "For clients: the stub around a request, whose header names the chain.");

impl<S, B> Service<http::Request<B>> for Serve<S>
where
    S: Service<http::Request<B>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Instrumented<S::Future>;

    fn poll_ready(&mut self, task: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(task)
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let carrier = Carrier::extract(request.headers());
        let Self { inner, naming } = self;
        // The function is known before the request goes on.
        let function = naming.with(&request, Function::clone);
        function.serve_async(carrier, inner.call(request))
    }
}

/// A request that a client is about to make.
#[derive(Debug)]
pub struct Outgoing<S, B> {
    service: S,
    request: http::Request<B>,
}

impl<S: Service<http::Request<B>>, B> Request for Outgoing<S, B> {
    type Future = S::Future;

    fn send(mut self, carrier: Option<Carrier>) -> S::Future {
        if let Some(carrier) = carrier {
            carrier.inject(self.request.headers_mut());
        }
        self.service.call(self.request)
    }
}

impl<S, B> Service<http::Request<B>> for CallOut<S>
where
    S: Service<http::Request<B>> + Clone,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Calling<Outgoing<S, B>>;

    fn poll_ready(&mut self, task: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(task)
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        // The service that is ready goes along; a clone of it stays.
        let clone = self.inner.clone();
        let service = std::mem::replace(&mut self.inner, clone);
        self.naming.with(&request, Function::clone).call_request(Outgoing { service, request })
    }
}

impl Function {
    fn call_request<M: Request>(&self, request: M) -> Calling<M> {
        Calling::new(self, request)
    }
}
