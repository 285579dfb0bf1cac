//! Calls of tasks.

use std::time::Duration;

use dyelog_probe::{Carrier, Function, Mode, branch};
use tokio::task::yield_now;

use crate::support::{paths, record, work};

static PAGE: Function = Function::new("Gateway", "page");
static RENDER: Function = Function::new("Gateway", "render");
static PRODUCT: Function = Function::new("Catalog", "product");
static STOCK: Function = Function::new("Inventory", "stock");

fn run<F: Future>(threads: usize, future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_time().build();
    runtime.expect("there are threads").block_on(future)
}

/// A service elsewhere: a task of its own that is spawned for the request.
async fn served(function: &'static Function, carrier: Option<Carrier>) -> u64 {
    let body = async {
        yield_now().await;
        let done = work(2000);
        yield_now().await;
        drop(RENDER.enter());
        done
    };
    tokio::spawn(function.serve_async(carrier, body)).await.expect("it does not panic")
}

async fn page() {
    drop(RENDER.enter());
    let (_, _) = tokio::join!(
        branch(PRODUCT.call_async(|carrier| served(&PRODUCT, carrier))),
        branch(STOCK.call_async(|carrier| served(&STOCK, carrier))),
    );
    work(1000);
    RENDER.run(yield_now()).await;
    tokio::spawn(branch(async {
        yield_now().await;
        drop(RENDER.enter());
    }))
    .await
    .expect("it does not panic");
}

#[test]
fn tasks_that_move_between_threads_keep_their_chain() {
    for mode in [Mode::Wall, Mode::Cpu, Mode::Both] {
        let ((), recorded) = record(mode, || {
            run(4, async {
                let pages: Vec<_> = (0..50).map(|_| tokio::spawn(PAGE.run(page()))).collect();
                for page in pages {
                    page.await.expect("it does not panic");
                }
            });
        });
        let threads = "Gateway::page > threads of Gateway::page";
        let expected = [
            ("Gateway::page", 50),
            ("Gateway::page > Gateway::render", 100),
            (threads, 150),
            ("Gateway::page > threads of Gateway::page > Gateway::render", 50),
            ("Gateway::page > threads of Gateway::page > Catalog::product", 50),
            ("Gateway::page > threads of Gateway::page > Catalog::product > Gateway::render", 50),
            ("Gateway::page > threads of Gateway::page > Inventory::stock", 50),
            ("Gateway::page > threads of Gateway::page > Inventory::stock > Gateway::render", 50),
        ];
        assert_eq!(recorded.sound(), paths(&expected));
    }
}

#[test]
fn what_a_branch_uses_is_not_the_time_of_the_task_around_it() {
    let ((), recorded) = record(Mode::Cpu, || {
        run(1, async {
            PAGE.run(async {
                let busy = || async {
                    let _stock = STOCK.enter();
                    work(3_000_000);
                };
                tokio::join!(branch(busy()), branch(busy()));
            })
            .await;
        });
    });
    recorded.sound();
    let profile = recorded.profile();
    let time = |name: &str| -> i64 {
        (0..profile.contexts.len())
            .filter(|node| profile.label(profile.contexts.key(*node), false) == name)
            .map(|node| profile.contexts.time(node))
            .sum()
    };
    // The work takes milliseconds; what is left to the page, and to the branches, are probes.
    assert!(
        time("Inventory::stock") > 10 * time("Gateway::page"),
        "{} {}",
        time("Inventory::stock"),
        time("Gateway::page")
    );
    assert!(time("Inventory::stock") > 10 * time("threads of Gateway::page"));
}

#[test]
fn what_is_given_up_is_recorded_so() {
    let ((), recorded) = record(Mode::Both, || {
        run(2, async {
            PAGE.run(async {
                tokio::select! {
                    () = branch(STOCK.run(std::future::pending())) => {}
                    () = branch(PRODUCT.run(tokio::time::sleep(Duration::from_millis(1)))) => {}
                }
                // Made, and never polled.
                drop(branch(yield_now()));
                drop(PRODUCT.run(yield_now()));
            })
            .await;
            let hung = tokio::spawn(PAGE.run(STOCK.run(RENDER.run(std::future::pending::<()>()))));
            tokio::time::sleep(Duration::from_millis(5)).await;
            hung.abort();
            assert!(hung.await.expect_err("it hangs").is_cancelled());
        });
    });
    let expected = [
        ("Gateway::page", 2),
        ("Gateway::page > threads of Gateway::page", 3),
        ("Gateway::page > threads of Gateway::page > Inventory::stock", 1),
        ("Gateway::page > threads of Gateway::page > Catalog::product", 1),
        ("Gateway::page > Inventory::stock", 1),
        ("Gateway::page > Inventory::stock > Gateway::render", 1),
    ];
    assert_eq!(recorded.sound(), paths(&expected));
    // The branch with its call, the branch that was never polled, and three calls.
    assert_eq!(recorded.profile().cancelled, 6);
}

#[test]
fn futures_at_once_without_branches_are_counted_and_harm_nothing_else() {
    let ((), recorded) = record(Mode::Both, || {
        run(1, async {
            PAGE.run(async {
                tokio::join!(PRODUCT.run(yield_now()), STOCK.run(yield_now()));
                drop(RENDER.enter());
            })
            .await;
        });
    });
    let profile = recorded.profile();
    assert!(profile.abnormal.is_empty(), "{:?}", profile.abnormal);
    assert_eq!(recorded.summary.interleaved, 1);
    let expected = [
        ("Gateway::page", 1),
        ("Gateway::page > Catalog::product", 1),
        ("Inventory::stock", 1),
        ("Gateway::page > Gateway::render", 1),
    ];
    assert_eq!(crate::support::tree(&profile), paths(&expected));
}

#[test]
fn what_is_joined_is_in_branches() {
    for threads in [1, 4] {
        let (sum, recorded) = record(Mode::Both, || {
            run(threads, async {
                PAGE.run(async {
                    let slow = async {
                        for _ in 0..3 {
                            yield_now().await;
                        }
                        1
                    };
                    let (one, two, three) =
                        dyelog_probe::join!(PRODUCT.run(slow), STOCK.run(async { 2 }), async { 3 },);
                    let nested = dyelog_probe::join_all((0..3).map(|number| async move {
                        dyelog_probe::join!(
                            STOCK.run(yield_now()),
                            PRODUCT.call_async(|carrier| served(&PRODUCT, carrier))
                        );
                        number
                    }))
                    .await;
                    drop(RENDER.enter());
                    assert_eq!(nested, [0, 1, 2]);
                    assert!(dyelog_probe::join_all(Vec::<std::future::Ready<u32>>::new()).await.is_empty());
                    one + two + three
                })
                .await
            })
        });
        let branches = "Gateway::page > threads of Gateway::page";
        let (product, stock) = (format!("{branches} > Catalog::product"), format!("{branches} > Inventory::stock"));
        let inner = format!("{branches} > threads of Gateway::page");
        let (deep_product, deep_stock) = (format!("{inner} > Catalog::product"), format!("{inner} > Inventory::stock"));
        let rendered = format!("{deep_product} > Gateway::render");
        let expected = [
            ("Gateway::page", 1),
            (branches, 6),
            (&product, 1),
            (&stock, 1),
            (&inner, 6),
            (&deep_product, 3),
            (&rendered, 3),
            (&deep_stock, 3),
            ("Gateway::page > Gateway::render", 1),
        ];
        assert_eq!((sum, recorded.sound()), (6, paths(&expected)));
        assert_eq!((recorded.summary.interleaved, recorded.profile().cancelled), (0, 0));
    }
}

#[test]
fn a_join_that_is_given_up_gives_up_its_branches() {
    let ((), recorded) = record(Mode::Both, || {
        run(1, async {
            PAGE.run(async {
                tokio::select! {
                    _ = async { dyelog_probe::join!(STOCK.run(std::future::pending::<()>()), PRODUCT.run(yield_now())) } => {}
                    () = tokio::time::sleep(Duration::from_millis(1)) => {}
                }
                drop(RENDER.enter());
            })
            .await;
        });
    });
    let expected = [
        ("Gateway::page", 1),
        ("Gateway::page > threads of Gateway::page", 2),
        ("Gateway::page > threads of Gateway::page > Inventory::stock", 1),
        ("Gateway::page > threads of Gateway::page > Catalog::product", 1),
        ("Gateway::page > Gateway::render", 1),
    ];
    assert_eq!(recorded.sound(), paths(&expected));
    assert_eq!(recorded.profile().cancelled, 2);
}

#[test]
fn nested_futures_nest() {
    let ((), recorded) = record(Mode::Both, || {
        run(2, async {
            PAGE.run(PRODUCT.run(STOCK.run(async {
                yield_now().await;
                RENDER.run(RENDER.run(yield_now())).await;
            })))
            .await;
        });
    });
    let deepest = "Gateway::page > Catalog::product > Inventory::stock > Gateway::render > Gateway::render";
    let found = recorded.sound();
    assert_eq!((found.len(), found.get(deepest)), (5, Some(&1)), "{found:?}");
}
