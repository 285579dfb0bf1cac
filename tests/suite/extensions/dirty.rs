//! Extensions in each other, and with events that were lost: right, or told.

use dyelog::lqn::submodel::RequestKind;
use dyelog::tlc::Reduction;

use super::{reduced, templates};
use crate::cli::run;
use crate::tlc::bundled;

/// All extensions that are not loaded by default.
const ALL: [&str; 6] =
    ["ext/publish.dl", "ext/streaming.dl", "ext/breaker.dl", "ext/retry.dl", "ext/batch.dl", "ext/barrier.dl"];

/// web asks shop and works on; shop asks pay, gives up, and asks again.
const RETRY_IN_FUTURE: &str = "operation s run=1
s,1,1,Be | client,1 t=0
s,1,2,Ac | client,2 t=0
s,1,3,Ac | web,1 t=0 cpu=0.001 op=get
s,1,4,Fk(s,2) | web,2 t=0.001
s,1,5,Ac | web,3 t=0.001 cpu=0.004
s,2,1,Be | shop,1 t=0.001 op=order
s,2,2,Ac | shop,2 t=0.001 cpu=0.002
s,2,3,Fk(s,3) | shop,3 t=0.003
s,2,4,Ac | shop,4 t=0.033 name=timeout
s,2,5,Ac | shop,5 t=0.033
s,3,1,Be | pay,1 t=0.003 op=charge
s,3,2,Ac | pay,2 t=0.003 cpu=0.04
s,2,6,Ac | pay,3 t=0.033 cpu=0.01 op=charge
s,2,7,Ac | pay,4 t=0.053
s,2,8,Ac | shop,6 t=0.053 cpu=0.001
s,2,9,Ed | shop,7 t=0.054
s,3,3,Ed | pay,5 t=0.06
s,1,6,Jn(s,2) | web,4 t=0.054
s,1,7,Ac | web,5 t=0.054 cpu=0.003
s,1,8,Ac | web,6 t=0.057
s,1,9,Ac | client,3 t=0.057
s,1,10,Ed | client,4 t=0.057
";

/// web asks view and waits for the thread on which view shows the last item that feed sends.
const STREAM_IN_FUTURE: &str = "operation s run=1
s,1,1,Be | client,1 t=0
s,1,2,Ac | client,2 t=0
s,1,3,Ac | web,1 t=0 cpu=0.001 op=get
s,1,4,Fk(s,2) | web,2 t=0.001
s,1,5,Ac | web,3 t=0.001 cpu=0.004
s,2,1,Be | view,1 t=0.001 op=show
s,2,2,Ac | view,2 t=0.001
s,2,3,Ac | feed,1 t=0.001 cpu=0.005 op=stream
s,2,4,Fk(s,3) | feed,2 t=0.006
s,3,1,Be | view,3 t=0.006
s,3,2,Ac | view,4 t=0.006 cpu=0.001
s,3,3,Ed | view,5 t=0.007
s,2,5,Ac | feed,3 t=0.006 cpu=0.005
s,2,6,Fk(s,4) | feed,4 t=0.011
s,2,7,Ed | feed,5 t=0.011
s,4,1,Be | view,6 t=0.011
s,4,2,Ac | view,7 t=0.011 cpu=0.001
s,4,3,Ed | view,8 t=0.012
s,1,6,Jn(s,4) | web,4 t=0.012
s,1,7,Ac | web,5 t=0.012 cpu=0.003
s,1,8,Ac | web,6 t=0.015
s,1,9,Ac | client,3 t=0.015
s,1,10,Ed | client,4 t=0.015
";

/// north asks disk before it meets south, and works meanwhile.
const BARRIER_WITH_FUTURE: &str = "operation s run=1
s,1,1,Be | client,1 t=0
s,1,2,Ac | client,2 t=0
s,1,3,Ac | lead,1 t=0 cpu=0.002 op=step
s,1,4,Fk(s,2) | lead,2 t=0.002
s,1,5,Fk(s,3) | lead,3 t=0.002
s,2,1,Be | north,1 t=0.002 op=cell
s,2,2,Fk(s,6) | north,2 t=0.002
s,6,1,Be | disk,1 t=0.002 op=load
s,6,2,Ac | disk,2 t=0.002 cpu=0.004
s,6,3,Ed | disk,3 t=0.006
s,2,3,Ac | north,3 t=0.002 cpu=0.001
s,2,4,Jn(s,6) | north,4 t=0.006
s,2,5,Fk(s,4) | north,5 t=0.006
s,4,1,Be | north,6 t=0.006
s,4,2,Ed | north,7 t=0.006
s,3,1,Be | south,1 t=0.002 op=cell
s,3,2,Ac | south,2 t=0.002 cpu=0.009
s,3,3,Fk(s,5) | south,3 t=0.011
s,5,1,Be | south,4 t=0.011
s,5,2,Ed | south,5 t=0.011
s,2,6,Jn(s,5) | north,8 t=0.011 op=exchange
s,2,7,Ac | north,9 t=0.011 cpu=0.008
s,2,8,Ed | north,10 t=0.019
s,3,4,Jn(s,4) | south,6 t=0.011 op=exchange
s,3,5,Ac | south,7 t=0.011 cpu=0.003
s,3,6,Ed | south,8 t=0.014
s,1,6,Jn(s,2) | lead,4 t=0.019
s,1,7,Jn(s,3) | lead,5 t=0.019
s,1,8,Ac | lead,6 t=0.019 cpu=0.001
s,1,9,Ac | lead,7 t=0.02
s,1,10,Ac | client,3 t=0.02
s,1,11,Ed | client,4 t=0.02
";

fn count(reduction: &Reduction, name: &str) -> usize {
    templates(reduction).iter().filter(|template| **template == name).count()
}

/// What is said of an operation after matching.
fn told(reduction: &Reduction) -> Vec<&str> {
    reduction.findings.findings.iter().map(|finding| finding.code.0).collect()
}

/// The requests of the entry of a service, with how often each was made.
fn requests(reduction: &Reduction, service: &str) -> Vec<(RequestKind, u64)> {
    let sub = &reduction.submodel;
    let entries = sub.entries().iter().filter(|entry| sub.names.text(entry.service) == service);
    let requests = entries.flat_map(|entry| entry.work.values()).flat_map(|work| &work.requests);
    let mut all: Vec<(RequestKind, u64)> = requests.map(|((kind, _), request)| (*kind, request.count)).collect();
    all.sort_unstable();
    all
}

fn pauses(reduction: &Reduction) -> f64 {
    let works = reduction.submodel.entries().iter().flat_map(|entry| entry.work.values());
    works.map(|work| work.pauses.sum.as_f64()).sum()
}

#[test]
fn extensions_lie_in_each_other() {
    let retry = reduced(RETRY_IN_FUTURE, &ALL);
    assert_eq!((count(&retry, "future"), count(&retry, "timed_out"), told(&retry)), (1, 1, vec![]));
    assert_eq!(requests(&retry, "order"), [(RequestKind::Synchronous, 1), (RequestKind::Asynchronous, 1)]);
    assert!((pauses(&retry) - 0.03).abs() < 1e-9, "{}", pauses(&retry));
    let barrier = reduced(BARRIER_WITH_FUTURE, &ALL);
    assert_eq!((count(&barrier, "barrier"), count(&barrier, "future"), told(&barrier)), (2, 3, vec![]));
    // What north asked for is asked for by its part before the barrier.
    assert_eq!(requests(&barrier, "cell"), [(RequestKind::Synchronous, 1)]);
}

/// Where a thread that nobody knows is waited for, the model has no wait, and says so.
#[test]
fn a_wait_that_is_not_modelled_is_told() {
    let stream = reduced(STREAM_IN_FUTURE, &ALL);
    assert_eq!((count(&stream, "stream"), count(&stream, "wait"), told(&stream)), (1, 1, vec!["R097"]));
    for (name, rules) in [("future", &[][..]), ("publish", &ALL), ("barrier", &ALL), ("nested-fork", &[])] {
        let reduction = reduced(&bundled(&format!("{name}.angio")), rules);
        assert_eq!(told(&reduction), [""; 0], "{name}");
    }
}

/// So many messages that are worked on at once.
fn batch(of: u32) -> String {
    let mut text = "operation s run=1\ns,1,1,Be | gate,1 op=put\n".to_owned();
    for message in 1..=of {
        text.push_str(&format!("s,1,{},Fk(s,{}) | gate,{}\n", message + 1, message + 1, message + 1));
        let counter = 2 * message - 1;
        text.push_str(&format!("s,{},1,Be | store,{counter} op=write\n", message + 1));
        if message < of {
            text.push_str(&format!("s,{},2,Ed | store,{}\n", message + 1, counter + 1));
        } else {
            text.push_str(&format!("s,{},2,Ac | store,{} cpu=0.001\n", message + 1, counter + 1));
            text.push_str(&format!("s,{},3,Ed | store,{}\n", message + 1, counter + 2));
        }
    }
    text + &format!("s,1,{},Ed | gate,{}\n", of + 2, of + 2)
}

/// Also a batch of two, whose sequence has no round: what comes before the rounds and after them is known without any.
#[test]
fn batches_of_any_size_are_one_request() {
    for of in 2..9 {
        let reduction = reduced(&batch(of), &ALL);
        assert_eq!((count(&reduction, "batch"), told(&reduction)), (1, vec![]), "{of}");
        assert_eq!(requests(&reduction, "put"), [(RequestKind::Asynchronous, 1)], "{of}");
    }
}

/// Each event that is lost is restored, or its operation is set aside.
#[test]
fn no_lost_event_is_overlooked() {
    for name in ["future", "publish", "streaming", "breaker", "retry", "batch", "barrier"] {
        let text = bundled(&format!("{name}.angio"));
        let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
        for lost in (0..lines.len()).filter(|line| !lines[*line].starts_with("operation")) {
            let rest: Vec<&str> = [&lines[..lost], &lines[lost + 1..]].concat();
            let quality = reduced(&rest.join("\n"), &ALL).quality;
            assert_eq!(quality.restored + quality.set_aside, 1, "{name}: {}", lines[lost]);
        }
    }
}

/// The evidence of a delay are the nodes before which it passed.
#[test]
fn a_delay_leads_to_its_nodes() {
    let told = run(&["explain", "traces/retry.angio", "--rules", "ext/retry.dl", "--demand", "order"]);
    let line = told.out.lines().find(|line| line.contains("delay") && line.contains("timeout")).unwrap_or_default();
    assert!(line.contains("30") && told.code == 0, "{}{}", told.out, told.err);
}

/// Spans, and traces that know none of the interactions, are to the extensions what they are without them.
#[test]
fn extensions_leave_other_traces_alone() {
    let rules: Vec<&str> = ALL.iter().flat_map(|file| ["--rules", file]).collect();
    for trace in ["traces/shop.otlp.jsonl", "traces/case-study.angio", "traces/multicast.angio", "traces/quorum.angio"]
    {
        let model = ["model", trace, "--format", "text"];
        let (alone, beside) = (run(&model), run(&[&model[..], &rules[..]].concat()));
        assert_eq!((alone.code, alone.out), (beside.code, beside.out), "{trace}");
    }
}
