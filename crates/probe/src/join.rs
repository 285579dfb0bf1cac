//! What a task does at once and waits for, each part a branch.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use crate::future::{Instrumented, branch};

pin_project! {
    /// A part of [`join!`](crate::join!) or [`join_all`]: a branch until its end, then what came of it.
    #[doc(hidden)]
    #[derive(Debug)]
    pub struct Part<F: Future> {
        #[pin]
        branch: Instrumented<F>,
        ended: bool,
        output: Option<F::Output>,
    }
}

impl<F: Future> Part<F> {
    /// Forks the branch off here.
    pub fn new(future: F) -> Self {
        Self { branch: branch(future), ended: false, output: None }
    }

    /// Goes on with the branch; whether it has ended.
    pub fn advance(self: Pin<&mut Self>, task: &mut Context<'_>) -> bool {
        let this = self.project();
        if !*this.ended
            && let Poll::Ready(output) = this.branch.poll(task)
        {
            (*this.ended, *this.output) = (true, Some(output));
        }
        *this.ended
    }

    /// What came of it.
    ///
    /// # Panics
    /// Before its end, and where it was asked before; neither can be in what this module makes.
    pub fn output(self: Pin<&mut Self>) -> F::Output {
        self.project().output.take().expect("all parts have ended, and each is asked once")
    }
}

/// Waits for several futures at once within a task. Each is a [`branch`](crate::branch): its calls have a chain of their own, and the records have the fork and
/// the join. The outcomes come as a tuple.
///
/// ```
/// # async fn catalog(_: u32) -> &'static str { "lamp" }
/// # async fn stock(_: u32) -> u32 { 7 }
/// async fn page(product: u32) -> String {
///     let (name, left) = dyelog_probe::join!(catalog(product), stock(product));
///     format!("{name}: {left} left")
/// }
/// # let mut page = std::pin::pin!(page(1));
/// # let mut task = std::task::Context::from_waker(std::task::Waker::noop());
/// # assert_eq!(page.as_mut().poll(&mut task), std::task::Poll::Ready("lamp: 7 left".to_owned()));
/// ```
#[macro_export]
macro_rules! join {
    // Each step names a variable of its own.
    (@parts [$($part:ident = $future:expr,)*] $next:expr, $($rest:expr,)*) => {
        $crate::join!(@parts [$($part = $future,)* part = $next,] $($rest,)*)
    };
    (@parts [$($part:ident = $future:expr,)*]) => {{
        $(let mut $part = ::std::pin::pin!($crate::Part::new($future));)*
        ::std::future::poll_fn(move |task| {
            let mut ended = true;
            $(ended &= $part.as_mut().advance(task);)*
            if ended {
                ::std::task::Poll::Ready(($($part.as_mut().output(),)*))
            } else {
                ::std::task::Poll::Pending
            }
        })
        .await
    }};
    ($($future:expr),+ $(,)?) => {
        $crate::join!(@parts [] $($future,)+)
    };
}

/// The same for any number of futures of one type: their outcomes, in order.
///
/// ```
/// # async fn stock(product: u32) -> u32 { product * 2 }
/// # let left = async {
/// let left: Vec<u32> = dyelog_probe::join_all((1..4).map(stock)).await;
/// # left };
/// # let mut left = std::pin::pin!(left);
/// # let mut task = std::task::Context::from_waker(std::task::Waker::noop());
/// # assert_eq!(std::future::Future::poll(left.as_mut(), &mut task), std::task::Poll::Ready(vec![2, 4, 6]));
/// ```
pub async fn join_all<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut parts: Vec<Pin<Box<Part<F>>>> = futures.into_iter().map(|future| Box::pin(Part::new(future))).collect();
    std::future::poll_fn(|task| {
        // No part may be left out of a round: each has its own waker to register.
        let left = parts.iter_mut().filter_map(|part| (!part.as_mut().advance(task)).then_some(())).count();
        if left == 0 { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    parts.iter_mut().map(|part| part.as_mut().output()).collect()
}
