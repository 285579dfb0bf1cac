//! Kieker logs.

use dyelog_diagnostic::names::Name;
use dyelog_trace::detect::detect;
use dyelog_trace::{Format, Origins, TraceNames};

use super::show::{listed, operations, place};

pub const MAP: &str = "$0=kieker.common.record.misc.KiekerMetadataRecord
$1=kieker.common.record.controlflow.OperationExecutionRecord
$2=kieker.common.record.flow.trace.TraceMetadata
$3=kieker.common.record.flow.trace.operation.BeforeOperationEvent
$4=kieker.common.record.flow.trace.operation.AfterOperationEvent
5=kieker.common.record.flow.trace.operation.AfterOperationFailedEvent
$6=kieker.common.record.flow.trace.concurrency.SplitEvent
$7=kieker.common.record.flow.trace.concurrency.JoinEvent
$8=kieker.common.record.remotecontrol.BeforeReceivedRemoteEvent
$9=kieker.common.record.remotecontrol.BeforeSentRemoteEvent
$10=kieker.common.record.system.CPUUtilizationRecord
$11=kieker.common.record.flow.trace.concurrency.monitor.MonitorEntryEvent
$12=kieker.common.record.flow.trace.ApplicationTraceMetadata";

/// A log of events: a branch that is joined, one that is not, and a call that is sent.
pub const LOG: &str = "$2;1;100;1;s;web;100;-1
$3;2;1000;100;0;void a.Web.handle();a.Web
$6;3;1100;100;1
$2;3;101;2;s;web;100;1
$3;4;1150;101;0;void a.Worker.run();a.Worker
$4;5;1300;101;1;void a.Worker.run();a.Worker
$6;3;1110;100;2
$12;3;102;3;s;web;100;2;app
$3;4;1160;102;0;void a.Mailer.send();a.Mailer
$5;5;2900;102;1;void a.Mailer.send();a.Mailer;java.io.IOException
$7;6;1400;100;3;101
$9;7;1500;100;4;REST
$4;8;2000;100;5;void a.Web.handle();a.Web
$10;9;1;web;0;0.1;0.1;0;0;0;0.2;0.8
$11;9;1;100;6;4
";

/// The operations of a log as trees of calls, and what was odd.
fn trees(files: &[(&str, &[u8])]) -> String {
    let (names, operations, report) = match operations(files) {
        Ok(read) => read,
        Err(reasons) => return listed(&reasons),
    };
    let mut text = String::new();
    for operation in &operations {
        let Origins::Items(items) = &operation.origins else { panic!("spans") };
        text += &format!("operation {} run {}\n", names.names.text(operation.scenario), operation.run);
        for item in items {
            let name = |name: Name| names.names.text(name);
            text += &format!("  {} {} {} {}\n", item.id, item.kind.label(), name(item.service), name(item.name));
        }
        text += &events(&names, operation);
    }
    for (reason, times) in &report.counted {
        text += &format!("{times} × {reason}\n");
    }
    for finding in &report.findings {
        text += &format!("{} {} {}\n", finding.code, place(&finding.place), finding.message);
    }
    text
}

fn events(names: &TraceNames, operation: &dyelog_trace::Operation) -> String {
    let shown = operation.events.iter().map(|event| {
        let task = names.names.text(names.task(event.task).name);
        format!("{}:{:?}@{task}", event.thread, event.kind)
    });
    format!("  {}\n", shown.collect::<Vec<_>>().join(" "))
}

#[test]
fn executions_of_two_processes() {
    let first = "$0;1;1.14;KIEKER;SRV0;1;false;0;MICROSECONDS;1
$1;10;public shop.Catalog shop.CRM.getOffers(java.lang.String, int);N/A;77;110;150;SRV0;2;1
$1;11;public static void shop.Shop.main(java.lang.String[]);<no-session-id>;77;100;200;SRV0;0;0
$1;12;shop.Catalog.<init>();<no-session-id>;77;101;105;SRV0;1;1
";
    let second = "$0;1;1.14;KIEKER;SRV1;1;false;0;MICROSECONDS;1
$1;10;shop.Catalog.find(boolean);N/A;77;120;140;SRV1;3;2
$1;10;shop.Catalog.scan();N/A;77;125;130;SRV1;4;3
";
    let files: [(&str, &[u8]); 4] = [
        ("b/kieker.map", MAP.as_bytes()),
        ("a/1.dat", first.as_bytes()),
        ("b/1.dat", second.as_bytes()),
        ("a/kieker.map", MAP.as_bytes()),
    ];
    let wanted = trees(&files);
    insta::assert_snapshot!("kieker_executions", wanted);
    // The order of files does not count, nor that of their records, which is the one of completion.
    let mut turned = files;
    turned.reverse();
    assert_eq!(trees(&turned), wanted);
}

#[test]
fn events_with_branches_and_remote_calls() {
    let second = "$2;1;555;1;s;db;-1;-1
$8;2;1600;100;4;555;0
$3;3;1610;555;1;java.util.List b.Store.find(b.Query);b.Store
$4;4;1700;555;2;java.util.List b.Store.find(b.Query);b.Store
";
    let files: [(&str, &[u8]); 4] = [
        ("w/kieker.map", MAP.as_bytes()),
        ("w/1.dat", LOG.as_bytes()),
        ("d/kieker.map", MAP.as_bytes()),
        ("d/1.dat", second.as_bytes()),
    ];
    insta::assert_snapshot!("kieker_events", trees(&files));
}

#[test]
fn damaged_logs() {
    let log = "$1;1;a.A.run();s;1;100;200;h;0;0
$1;2;a.B.run();s;1;110;120;h;1;1
$1;2;a.D.run();s;1;131;139;h;3;2
$99;1;x
$1;not;a;record
$1;3;a.C.run();s;2;300;310;h;5;3
hello
$3;1;400;9;0;void a.A.go();a.A
$3;1;410;9;1;void a.B.go();a.B
$4;1;420;9;2;void a.A.go();a.A
$4;1;430;9;3;void a.X.go();a.X
$1;1;a.A.solo();s;-1;500;510;h;-1;-1
$1;1;a.A.solo();s;-1;520;530;h;-1;-1
";
    insta::assert_snapshot!("kieker_damaged", trees(&[("kieker.map", MAP.as_bytes()), ("1.dat", log.as_bytes())]));
    insta::assert_snapshot!("kieker_no_map", trees(&[("a/kieker.map", MAP.as_bytes()), ("b/1.dat", log.as_bytes())]));
    insta::assert_snapshot!("kieker_map_alone", trees(&[("kieker.map", MAP.as_bytes())]));
}

#[test]
fn a_binary_log_is_what_its_text_is() {
    let mut map = MAP.to_owned();
    for (number, text) in [(20, "h"), (21, "s"), (22, "a.A.run()"), (23, "a.B.run()"), (24, "MICROSECONDS")] {
        map += &format!("\n${number}={text}");
    }
    let stamp = 1_700_000_000_000_000_000_i64;
    let head = |class: i32| [&class.to_be_bytes()[..], &stamp.to_be_bytes()].concat();
    let execution = |signature: i32, start: i64, end: i64, eoi: i32, ess: i32| {
        [
            &head(1)[..],
            &signature.to_be_bytes(),
            &21_i32.to_be_bytes(),
            &1_i64.to_be_bytes(),
            &start.to_be_bytes(),
            &end.to_be_bytes(),
            &20_i32.to_be_bytes(),
            &eoi.to_be_bytes(),
            &ess.to_be_bytes(),
        ]
        .concat()
    };
    let strings = [21_i32, 21, 20].map(i32::to_be_bytes).concat();
    let metadata = [
        &head(0)[..],
        &strings,
        &1_i32.to_be_bytes(),
        &[0],
        &0_i64.to_be_bytes(),
        &24_i32.to_be_bytes(),
        &3_i64.to_be_bytes(),
    ]
    .concat();
    let mut bytes = [metadata, execution(23, 110, 120, 1, 1), execution(22, 100, 200, 0, 0)].concat();
    let text =
        "$0;1;1.14;K;h;1;false;0;MICROSECONDS;1\n$1;1;a.B.run();s;1;110;120;h;1;1\n$1;1;a.A.run();s;1;100;200;h;0;0\n";
    assert_eq!(detect("t", &bytes), Ok(Format::Kieker));
    let wanted = trees(&[("kieker.map", MAP.as_bytes()), ("1.dat", text.as_bytes())]);
    assert!(wanted.contains("a.B") || wanted.contains(" B run()"), "{wanted}");
    assert_eq!(trees(&[("kieker.map", map.as_bytes()), ("1.bin", &bytes)]), wanted);
    // Behind a record whose length nobody knows nothing can be read.
    bytes.extend(head(21));
    bytes.extend(execution(22, 100, 200, 0, 0));
    insta::assert_snapshot!("kieker_binary_good_part", trees(&[("kieker.map", map.as_bytes()), ("1.bin", &bytes)]));
}

/// Records of locks are counted, in text and in binary; they change nothing else.
#[test]
fn locks() {
    let map = format!(
        "{MAP}\n$13=kieker.common.record.flow.trace.concurrency.monitor.MonitorRequestEvent
$14=kieker.common.record.flow.trace.concurrency.monitor.MonitorExitEvent
$15=kieker.common.record.flow.trace.concurrency.monitor.MonitorWaitEvent
$16=kieker.common.record.flow.trace.concurrency.monitor.MonitorNotifyAllEvent
$20=void a.Web.handle()
$21=a.Web
$22=s
$23=web"
    );
    // Class, time, place and lock; a request is never granted.
    let steps = [
        (13, 1100, 1, 4),
        (11, 1300, 2, 4),
        (15, 1400, 3, 4),
        (11, 1600, 4, 4),
        (16, 1650, 5, 4),
        (14, 1700, 6, 4),
        (13, 1800, 7, 9),
    ];
    let lines = steps.map(|(class, time, order, lock)| format!("${class};1;{time};100;{order};{lock}\n")).concat();
    let text = format!(
        "$2;1;100;1;s;web;100;-1\n$3;2;1000;100;0;void a.Web.handle();a.Web\n{lines}$4;3;2000;100;8;void a.Web.handle();a.Web\n"
    );
    let found = trees(&[("kieker.map", map.as_bytes()), ("a.dat", text.as_bytes())]);
    insta::assert_snapshot!("kieker_locks", found);
    let mut binary: Vec<u8> = Vec::new();
    let head = |binary: &mut Vec<u8>, class: i32| {
        binary.extend(class.to_be_bytes());
        binary.extend(1_412_763_178_834_633_375_i64.to_be_bytes());
    };
    head(&mut binary, 2);
    for long in [100_i64, 1] {
        binary.extend(long.to_be_bytes());
    }
    binary.extend([22_i32, 23].map(i32::to_be_bytes).concat());
    binary.extend(100_i64.to_be_bytes());
    binary.extend((-1_i32).to_be_bytes());
    let mut event = |class: i32, time: i64, order: i32, rest: &[i32]| {
        head(&mut binary, class);
        binary.extend([time, 100].map(i64::to_be_bytes).concat());
        binary.extend(order.to_be_bytes());
        binary.extend(rest.iter().flat_map(|number| number.to_be_bytes()));
    };
    event(3, 1000, 0, &[20, 21]);
    for (class, time, order, lock) in steps {
        event(class, time, order, &[lock]);
    }
    event(4, 2000, 8, &[20, 21]);
    assert_eq!(trees(&[("kieker.map", map.as_bytes()), ("a.bin", &binary)]).replace("a.bin", "a.dat"), found);
}
