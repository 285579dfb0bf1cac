//! What the shop does. CPU work is hashing, in amounts that are fixed or depend on the product; a few hundred microseconds to
//! two milliseconds on the machines of today.
//!
//! - gateway: the product page asks catalog and inventory at once; the checkout asks them and payment one after another.
//! - catalog: looks a product up.
//! - inventory: tells and reserves stock; to reserve it asks catalog how large the parcel will be.
//! - payment: one thread; replies as soon as the card is authorised, then goes on to write the audit log.
//! - mailer: one thread; takes orders from a queue and composes confirmations.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use axum::{Json, Router};
use dyelog_probe::{Carrier, ServeLayer, branch};
use opentelemetry_sdk::trace::SdkTracerProvider;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::service::Service;
use crate::telemetry::{self, TraceFile};
use crate::work::{self, Operation};

/// How many products there are.
pub const PRODUCTS: u32 = 40;
/// The queue from gateway to mailer.
const CONFIRMATIONS: &str = "confirmations";
/// Threads of the services that are limited to a few.
const GATEWAY_THREADS: usize = 16;
const CATALOG_THREADS: usize = 4;
const INVENTORY_THREADS: usize = 2;
const PAYMENT_THREADS: usize = 1;
const MAILER_THREADS: usize = 1;

/// A service that can run in a process of its own; the mailer runs with the gateway, whose queue it empties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Role {
    Catalog,
    Inventory,
    Payment,
    Gateway,
}

impl Role {
    /// All of them, each after those that it calls.
    pub const ALL: [Self; 4] = [Self::Catalog, Self::Inventory, Self::Payment, Self::Gateway];
}

/// Where services listen, by role.
#[derive(Clone, Copy, Debug, Default)]
pub struct Addresses([Option<SocketAddr>; 4]);

impl Addresses {
    /// Where a service listens.
    pub fn of(&self, role: Role) -> anyhow::Result<SocketAddr> {
        self.0[role as usize].with_context(|| format!("it is not known where {role:?} listens"))
    }

    /// Says where a service listens.
    pub fn set(&mut self, role: Role, address: SocketAddr) {
        self.0[role as usize] = Some(address);
    }
}

/// The running shop, or the part of it that this process runs.
pub struct Shop {
    /// Where its services listen.
    pub addresses: Addresses,
    servers: Vec<JoinHandle<()>>,
    mailer: Option<JoinHandle<()>>,
    payment: Option<Service>,
    providers: Vec<SdkTracerProvider>,
}

impl Shop {
    /// Lets queued work finish, stops all services and writes their last spans out.
    pub async fn finish(self) -> anyhow::Result<()> {
        if let Some(payment) = self.payment {
            payment.idle(PAYMENT_THREADS as u32).await;
        }
        // With the servers gone nobody can send to the queue any more, and the mailer ends when it has emptied it.
        for server in self.servers {
            server.abort();
            drop(server.await);
        }
        if let Some(mailer) = self.mailer {
            mailer.await?;
        }
        for provider in self.providers {
            provider.shutdown()?;
        }
        Ok(())
    }
}

/// Starts services, each on a port of its own. `addresses` has those that run elsewhere.
pub async fn start(spans: Option<&TraceFile>, roles: &[Role], addresses: Addresses) -> anyhow::Result<Shop> {
    let mut shop = Shop { addresses, servers: Vec::new(), mailer: None, payment: None, providers: Vec::new() };
    for &role in roles {
        let router = shop.router(role, spans)?;
        let address = serve(&mut shop.servers, router).await?;
        shop.addresses.set(role, address);
    }
    Ok(shop)
}

impl Shop {
    fn service(&mut self, name: &'static str, threads: usize, spans: Option<&TraceFile>) -> Service {
        let provider = telemetry::provider(spans, name);
        let service = Service::new(&provider, threads);
        self.providers.push(provider);
        service
    }

    fn router(&mut self, role: Role, spans: Option<&TraceFile>) -> anyhow::Result<Router> {
        Ok(match role {
            Role::Catalog => catalog(self.service("catalog", CATALOG_THREADS, spans)),
            Role::Inventory => {
                let service = self.service("inventory", INVENTORY_THREADS, spans);
                Inventory { service, catalog: self.addresses.of(Role::Catalog)? }.router()
            }
            Role::Payment => {
                let service = self.service("payment", PAYMENT_THREADS, spans);
                self.payment = Some(service.clone());
                payment(service)
            }
            Role::Gateway => {
                let (queue, messages) = mpsc::unbounded_channel();
                let mailer = self.service("mailer", MAILER_THREADS, spans);
                self.mailer = Some(tokio::spawn(run_mailer(mailer, messages)));
                let service = self.service("gateway", GATEWAY_THREADS, spans);
                let [catalog, inventory, payment] =
                    [Role::Catalog, Role::Inventory, Role::Payment].map(|role| self.addresses.of(role));
                Gateway { service, catalog: catalog?, inventory: inventory?, payment: payment?, queue }.router()
            }
        })
    }
}

/// What an operation is served by, as a function of call graphs.
fn probed(operation: &Operation) -> ServeLayer {
    ServeLayer::new(&operation.function)
}

async fn serve(servers: &mut Vec<JoinHandle<()>>, router: Router) -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    servers.push(tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, router).await {
            eprintln!("a server stopped: {error}");
        }
    }));
    Ok(address)
}

#[derive(Serialize, Deserialize)]
struct Product {
    id: u32,
    cents: u32,
    litres: u32,
}

#[derive(Serialize, Deserialize)]
struct Stock {
    product: u32,
    left: u32,
}

#[derive(Serialize, Deserialize)]
struct Receipt {
    product: u32,
    cents: u32,
}

/// What goes through the queue: the order, the trace context as message properties, and the causal chain.
struct Message {
    chain: Option<Carrier>,
    properties: HashMap<String, String>,
    receipt: Receipt,
}

type Answer<T> = Result<Json<T>, StatusCode>;

// ---- gateway ---------------------------------------------------------------------------------------------------------------

#[derive(Clone)]
struct Gateway {
    service: Service,
    catalog: SocketAddr,
    inventory: SocketAddr,
    payment: SocketAddr,
    queue: mpsc::UnboundedSender<Message>,
}

impl Gateway {
    fn router(self) -> Router {
        Router::new()
            .route("/product/{id}", get(page).layer(probed(&work::PAGE)))
            .route("/checkout/{id}", post(checkout).layer(probed(&work::CHECKOUT)))
            .with_state(self)
    }
}

/// A product page: two calls at once, joined before the page is rendered.
async fn page(State(gateway): State<Gateway>, Path(id): Path<u32>, headers: HeaderMap) -> Answer<Product> {
    let visit = gateway.service.accept(&work::PAGE, format!("/product/{id}"), &headers).await;
    visit.compute(&work::PARSE_REQUEST, 200);
    let (product_path, stock_path) = (format!("/products/{id}"), format!("/stock/{id}"));
    let answers = tokio::join!(
        branch(visit.call::<Product>(&work::PRODUCT, gateway.catalog, &product_path)),
        branch(visit.call::<Stock>(&work::STOCK, gateway.inventory, &stock_path)),
    );
    visit.compute(&work::RENDER_PAGE, 900);
    let (product, stock) = answers;
    visit.reply(stock.and(product)).map(Json)
}

/// A checkout: three calls one after another, then a message that nobody waits for.
async fn checkout(State(gateway): State<Gateway>, Path(id): Path<u32>, headers: HeaderMap) -> Answer<Receipt> {
    let visit = gateway.service.accept(&work::CHECKOUT, format!("/checkout/{id}"), &headers).await;
    visit.compute(&work::VALIDATE_CART, 350);
    let receipt = async {
        let product: Product = visit.call(&work::PRODUCT, gateway.catalog, &format!("/products/{id}")).await?;
        let _: Stock = visit.call(&work::RESERVATION, gateway.inventory, &format!("/reservations/{id}")).await?;
        visit.call::<Receipt>(&work::CHARGE, gateway.payment, &format!("/charges/{id}/{}", product.cents)).await
    }
    .await;
    if let Ok(Receipt { product, cents }) = receipt {
        visit.send(CONFIRMATIONS, &work::CONFIRM, |context, chain| {
            let properties = telemetry::inject_properties(context);
            // The mailer outlives the gateway, so there is always somebody to receive it.
            drop(gateway.queue.send(Message { chain, properties, receipt: Receipt { product, cents } }));
        });
    }
    visit.compute(&work::RENDER_RECEIPT, 400);
    visit.reply(receipt).map(Json)
}

// ---- catalog ---------------------------------------------------------------------------------------------------------------

fn catalog(service: Service) -> Router {
    Router::new()
        .route("/products/{id}", get(product).layer(probed(&work::PRODUCT)))
        .route("/parcels/{id}", get(parcel).layer(probed(&work::PARCEL)))
        .with_state(service)
}

async fn product(State(catalog): State<Service>, Path(id): Path<u32>, headers: HeaderMap) -> Answer<Product> {
    let visit = catalog.accept(&work::PRODUCT, format!("/products/{id}"), &headers).await;
    // Products with more variants take longer.
    visit.compute(&work::LOOK_UP, 300 + 20 * (id % 16));
    visit.reply(Ok(Product { id, cents: 999 + 100 * id, litres: 1 + id % 7 })).map(Json)
}

async fn parcel(State(catalog): State<Service>, Path(id): Path<u32>, headers: HeaderMap) -> Answer<u32> {
    let visit = catalog.accept(&work::PARCEL, format!("/parcels/{id}"), &headers).await;
    visit.compute(&work::MEASURE, 300);
    visit.reply(Ok(1 + id % 7)).map(Json)
}

// ---- inventory -------------------------------------------------------------------------------------------------------------

#[derive(Clone)]
struct Inventory {
    service: Service,
    catalog: SocketAddr,
}

impl Inventory {
    fn router(self) -> Router {
        Router::new()
            .route("/stock/{id}", get(stock).layer(probed(&work::STOCK)))
            .route("/reservations/{id}", post(reserve).layer(probed(&work::RESERVATION)))
            .with_state(self)
    }
}

async fn stock(State(inventory): State<Inventory>, Path(id): Path<u32>, headers: HeaderMap) -> Answer<Stock> {
    let visit = inventory.service.accept(&work::STOCK, format!("/stock/{id}"), &headers).await;
    visit.compute(&work::COUNT, 500);
    visit.reply(Ok(Stock { product: id, left: 100 })).map(Json)
}

/// A reservation makes a call of its own: three services are in the chain.
async fn reserve(State(inventory): State<Inventory>, Path(id): Path<u32>, headers: HeaderMap) -> Answer<Stock> {
    let visit = inventory.service.accept(&work::RESERVATION, format!("/reservations/{id}"), &headers).await;
    let litres = visit.call::<u32>(&work::PARCEL, inventory.catalog, &format!("/parcels/{id}")).await;
    visit.compute(&work::RESERVE, 700);
    visit.reply(litres.map(|litres| Stock { product: id, left: 100 - litres })).map(Json)
}

// ---- payment ---------------------------------------------------------------------------------------------------------------

fn payment(service: Service) -> Router {
    Router::new().route("/charges/{id}/{cents}", post(charge).layer(probed(&work::CHARGE))).with_state(service)
}

/// A charge has two phases: the reply leaves once the card is authorised, while the audit log is written after it. The
/// server span, like the service's only thread, is busy until the second phase is over.
async fn charge(
    State(payment): State<Service>,
    Path((product, cents)): Path<(u32, u32)>,
    headers: HeaderMap,
) -> Answer<Receipt> {
    let path = format!("/charges/{product}/{cents}");
    let visit = payment.accept(&work::CHARGE, path, &headers).await;
    visit.compute(&work::AUTHORISE, 1200);
    let answer = visit.reply(Ok(Receipt { product, cents })).map(Json);
    let visit = Arc::new(visit);
    let in_second_phase = Arc::clone(&visit);
    let second_phase = branch(async move {
        // Gives the reply the time to leave. The thread is held meanwhile, without a use of the processor.
        tokio::time::sleep(Duration::from_millis(1)).await;
        in_second_phase.compute(&work::AUDIT, 1800);
    });
    tokio::spawn(async move {
        second_phase.await;
        // The visit, and with it the thread, ends when its records are complete.
        drop(visit);
    });
    answer
}

// ---- mailer ----------------------------------------------------------------------------------------------------------------

/// Takes one message after another until nobody can send any more.
async fn run_mailer(mailer: Service, mut messages: mpsc::UnboundedReceiver<Message>) {
    while let Some(message) = messages.recv().await {
        let Message { chain, properties, receipt } = message;
        let process = async {
            let visit = mailer.consume(CONFIRMATIONS, &telemetry::extract_properties(&properties)).await;
            visit.compute(&work::COMPOSE, 800 + receipt.cents % 100);
        };
        work::CONFIRM.function.serve_async(chain, process).await;
    }
}
