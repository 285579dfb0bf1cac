//! What the shop does. CPU work is hashing, in amounts that are fixed or depend on the product; a few hundred microseconds to
//! two milliseconds on the machines of today.
//!
//! - gateway: the product page asks catalog and inventory at once; the checkout asks them and payment one after another.
//! - catalog: looks a product up.
//! - inventory: tells and reserves stock; to reserve it asks catalog how large the parcel will be.
//! - payment: one thread; replies as soon as the card is authorised, then goes on to write the audit log.
//! - mailer: one thread; takes orders from a queue and composes confirmations.

use std::collections::HashMap;
use std::hint::black_box;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use axum::{Json, Router};
use opentelemetry_sdk::trace::SdkTracerProvider;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::service::Service;
use crate::telemetry::{self, TraceFile};

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

/// The running shop.
pub struct Shop {
    /// Where users send their requests.
    pub gateway: SocketAddr,
    servers: Vec<JoinHandle<()>>,
    mailer: JoinHandle<()>,
    payment: Service,
    providers: Vec<SdkTracerProvider>,
}

impl Shop {
    /// Lets queued work finish, stops all services and writes their last spans out.
    pub async fn finish(self) -> anyhow::Result<()> {
        self.payment.idle(PAYMENT_THREADS as u32).await;
        // With the servers gone nobody can send to the queue any more, and the mailer ends when it has emptied it.
        for server in self.servers {
            server.abort();
            drop(server.await);
        }
        self.mailer.await?;
        for provider in self.providers {
            provider.shutdown()?;
        }
        Ok(())
    }
}

/// Starts every service on a port of its own.
pub async fn start(file: &TraceFile) -> anyhow::Result<Shop> {
    let names = ["gateway", "catalog", "inventory", "payment", "mailer"];
    let providers = names.map(|name| file.provider(name));
    let [of_gateway, of_catalog, of_inventory, of_payment, of_mailer] = &providers;

    let (queue, messages) = mpsc::unbounded_channel();
    let mailer = tokio::spawn(run_mailer(Service::new(of_mailer, MAILER_THREADS)?, messages));

    let mut servers = Vec::new();
    let catalog = serve(&mut servers, catalog(Service::new(of_catalog, CATALOG_THREADS)?)).await?;
    let inventory = Inventory { service: Service::new(of_inventory, INVENTORY_THREADS)?, catalog };
    let inventory = serve(&mut servers, inventory.router()).await?;
    let payment_service = Service::new(of_payment, PAYMENT_THREADS)?;
    let payment = serve(&mut servers, payment(payment_service.clone())).await?;
    let gateway = Gateway { service: Service::new(of_gateway, GATEWAY_THREADS)?, catalog, inventory, payment, queue };
    let gateway = serve(&mut servers, gateway.router()).await?;
    Ok(Shop { gateway, servers, mailer, payment: payment_service, providers: providers.into() })
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

/// Hashing that takes about this many microseconds of CPU.
fn work(microseconds: u32) {
    let mut hash = u64::from(microseconds);
    for round in 0..u64::from(microseconds) * 700 {
        hash = (hash ^ round).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(31);
    }
    black_box(hash);
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

/// What goes through the queue: the order, and the trace context as message properties.
struct Message {
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
        Router::new().route("/product/{id}", get(page)).route("/checkout/{id}", post(checkout)).with_state(self)
    }
}

/// A product page: two calls at once, joined before the page is rendered.
async fn page(State(gateway): State<Gateway>, Path(id): Path<u32>, headers: HeaderMap) -> Answer<Product> {
    let visit = gateway.service.accept("GET", "/product/{id}", format!("/product/{id}"), &headers).await;
    visit.compute("parse request", || work(200));
    let (product_path, stock_path) = (format!("/products/{id}"), format!("/stock/{id}"));
    let answers = tokio::join!(
        visit.call::<Product>("GET", gateway.catalog, &product_path),
        visit.call::<Stock>("GET", gateway.inventory, &stock_path),
    );
    visit.compute("render page", || work(900));
    let (product, stock) = answers;
    visit.reply(stock.and(product)).map(Json)
}

/// A checkout: three calls one after another, then a message that nobody waits for.
async fn checkout(State(gateway): State<Gateway>, Path(id): Path<u32>, headers: HeaderMap) -> Answer<Receipt> {
    let visit = gateway.service.accept("POST", "/checkout/{id}", format!("/checkout/{id}"), &headers).await;
    visit.compute("validate cart", || work(350));
    let receipt = async {
        let product: Product = visit.call("GET", gateway.catalog, &format!("/products/{id}")).await?;
        let _: Stock = visit.call("POST", gateway.inventory, &format!("/reservations/{id}")).await?;
        visit.call::<Receipt>("POST", gateway.payment, &format!("/charges/{id}/{}", product.cents)).await
    }
    .await;
    if let Ok(Receipt { product, cents }) = receipt {
        visit.send(CONFIRMATIONS, |context| {
            let properties = telemetry::inject_properties(context);
            // The mailer outlives the gateway, so there is always somebody to receive it.
            drop(gateway.queue.send(Message { properties, receipt: Receipt { product, cents } }));
        });
    }
    visit.compute("render receipt", || work(400));
    visit.reply(receipt).map(Json)
}

// ---- catalog ---------------------------------------------------------------------------------------------------------------

fn catalog(service: Service) -> Router {
    Router::new().route("/products/{id}", get(product)).route("/parcels/{id}", get(parcel)).with_state(service)
}

async fn product(State(catalog): State<Service>, Path(id): Path<u32>, headers: HeaderMap) -> Answer<Product> {
    let visit = catalog.accept("GET", "/products/{id}", format!("/products/{id}"), &headers).await;
    // Products with more variants take longer.
    visit.compute("look up product", || work(300 + 20 * (id % 16)));
    visit.reply(Ok(Product { id, cents: 999 + 100 * id, litres: 1 + id % 7 })).map(Json)
}

async fn parcel(State(catalog): State<Service>, Path(id): Path<u32>, headers: HeaderMap) -> Answer<u32> {
    let visit = catalog.accept("GET", "/parcels/{id}", format!("/parcels/{id}"), &headers).await;
    visit.compute("measure parcel", || work(300));
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
        Router::new().route("/stock/{id}", get(stock)).route("/reservations/{id}", post(reserve)).with_state(self)
    }
}

async fn stock(State(inventory): State<Inventory>, Path(id): Path<u32>, headers: HeaderMap) -> Answer<Stock> {
    let visit = inventory.service.accept("GET", "/stock/{id}", format!("/stock/{id}"), &headers).await;
    visit.compute("count stock", || work(500));
    visit.reply(Ok(Stock { product: id, left: 100 })).map(Json)
}

/// A reservation makes a call of its own: three services are in the chain.
async fn reserve(State(inventory): State<Inventory>, Path(id): Path<u32>, headers: HeaderMap) -> Answer<Stock> {
    let visit = inventory.service.accept("POST", "/reservations/{id}", format!("/reservations/{id}"), &headers).await;
    let litres = visit.call::<u32>("GET", inventory.catalog, &format!("/parcels/{id}")).await;
    visit.compute("reserve stock", || work(700));
    visit.reply(litres.map(|litres| Stock { product: id, left: 100 - litres })).map(Json)
}

// ---- payment ---------------------------------------------------------------------------------------------------------------

fn payment(service: Service) -> Router {
    Router::new().route("/charges/{id}/{cents}", post(charge)).with_state(service)
}

/// A charge has two phases: the reply leaves once the card is authorised, while the audit log is written after it. The
/// server span, like the service's only thread, is busy until the second phase is over.
async fn charge(
    State(payment): State<Service>,
    Path((product, cents)): Path<(u32, u32)>,
    headers: HeaderMap,
) -> Answer<Receipt> {
    let path = format!("/charges/{product}/{cents}");
    let visit = payment.accept("POST", "/charges/{id}/{cents}", path, &headers).await;
    visit.compute("authorise card", || work(1200));
    let answer = visit.reply(Ok(Receipt { product, cents })).map(Json);
    tokio::spawn(async move {
        // Gives the reply the time to leave. The thread is held meanwhile, without a use of the processor.
        tokio::time::sleep(Duration::from_millis(1)).await;
        visit.compute("write audit log", || work(1800));
    });
    answer
}

// ---- mailer ----------------------------------------------------------------------------------------------------------------

/// Takes one message after another until nobody can send any more.
async fn run_mailer(mailer: Service, mut messages: mpsc::UnboundedReceiver<Message>) {
    while let Some(message) = messages.recv().await {
        let visit = mailer.consume(CONFIRMATIONS, &telemetry::extract_properties(&message.properties)).await;
        visit.compute("compose e-mail", || work(800 + message.receipt.cents % 100));
    }
}
