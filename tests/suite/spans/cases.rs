//! The decision table, case by case.

use insta::assert_snapshot;

use super::dsl::{counted, events, timed};

#[test]
fn synchronous_call() {
    assert_snapshot!(timed("
        a - web server GET   0 100
        b a web client call 10  60 
        c b db  server find 15  55 cpu.time_ms=7
    "), @r#"
    operation "web GET" run=0000000000000001 start=1700000000000001000
    1,1,Be | web,1 op="GET" t=0
    1,2,Ac | web,2 t=0
    1,3,Ac | web,3 t=0.01
    1,4,Ac | db,1 op="find" cpu=0.007 t=0.015
    1,5,Ac | db,2 t=0.055
    1,6,Ac | web,4 t=0.06
    1,7,Ed | web,5 t=0.1
    "#);
}

#[test]
fn calls_in_sequence_and_nested() {
    assert_snapshot!(events("
        a - web  server GET   0 100
        b a web  client call 10  40
        c b shop server ask  15  35
        d c shop client find 20  30
        e d db   server find 21  29
        f a web  client call 40  90
        10 f shop server buy 45  85
    "), @r#"
    operation "web GET" run=0000000000000001
    1,1,Be | web,1 op="GET"
    1,2,Ac | web,2
    1,3,Ac | web,3
    1,4,Ac | shop,1 op="ask"
    1,5,Ac | shop,2
    1,6,Ac | db,1 op="find"
    1,7,Ac | db,2
    1,8,Ac | shop,3
    1,9,Ac | shop,4
    1,10,Ac | web,4
    1,11,Ac | web,5
    1,12,Ac | shop,5 op="buy"
    1,13,Ac | shop,6
    1,14,Ac | web,6
    1,15,Ed | web,7
    "#);
}

#[test]
fn second_phase_with_a_call_in_it() {
    assert_snapshot!(timed("
        a - web server GET   0 100
        b a web client call 10  60
        c b log server put  15  90
        d c log client sync 61  80
        e d db  server sync 62  79
    "), @r#"
    operation "web GET" run=0000000000000001 start=1700000000000001000
    1,1,Be | web,1 op="GET" t=0
    1,2,Ac | web,2 t=0
    1,3,Ac | web,3 t=0.01
    1,4,Ac | log,1 op="put" t=0.015
    1,5,Fk(2) | log,2 t=0.06
    1,6,Ac | log,3 t=0.06
    1,7,Ac | log,4 t=0.061
    1,8,Ac | db,1 op="sync" t=0.062
    1,9,Ac | db,2 t=0.079
    1,10,Ac | log,5 t=0.08
    1,11,Ed | log,6 t=0.09
    2,1,Be | web,4 t=0.06
    2,2,Ac | web,5 t=0.06
    2,3,Ed | web,6 t=0.1
    "#);
}

#[test]
fn local_work_after_the_reply_is_a_second_phase() {
    assert_snapshot!(events("
        a - web server   GET    0 100
        b a web client   call  10  60
        c b log server   put   15  55
        d c log internal flush 56  90
    "), @r#"
    operation "web GET" run=0000000000000001
    1,1,Be | web,1 op="GET"
    1,2,Ac | web,2
    1,3,Ac | web,3
    1,4,Ac | log,1 op="put"
    1,5,Fk(2) | log,2
    1,6,Ac | log,3
    1,7,Ac | log,4 name="flush"
    1,8,Ed | log,5
    2,1,Be | web,4
    2,2,Ac | web,5
    2,3,Ed | web,6
    "#);
}

const ASYNCHRONOUS: &str = r#"
operation "web GET" run=0000000000000001
1,1,Be | web,1 op="GET"
1,2,Ac | web,2
1,3,Fk(2) | web,3
2,1,Be | mail,1 op="on order"
2,2,Ac | mail,2
2,3,Ed | mail,3
1,4,Ac | web,4
1,5,Ed | web,5
"#;

/// The sender waits until its message is taken.
const WAITED_FOR: &str = r#"
operation "web GET" run=0000000000000001
1,1,Be | web,1 op="GET"
1,2,Ac | web,2
1,3,Fk(2) | web,3
1,4,Ac | web,4
2,1,Be | mail,1 op="on order"
2,2,Ac | mail,2
2,3,Ed | mail,3
1,5,Ac | web,5
1,6,Ed | web,6
"#;

#[test]
fn message_by_kind() {
    let got = events(
        "
        a - web  server   GET        0 100
        b a web  producer order     10  11
        c b mail consumer on_order 150 190
    ",
    );
    assert_eq!(got.trim(), WAITED_FOR.trim());
}

/// What begins during the span of a message, or an end after that of what sends it, shows that the sender goes on: it pauses nowhere, and answers when it did.
#[test]
fn a_sender_that_is_seen_to_go_on_does_not_wait() {
    let begins_another = timed(
        "
        a - web server   GET    0 100
        b a web producer order 10  60
        c a web internal price 20  90
    ",
    );
    let outlasts = timed(
        "
        a - web server   GET    0 100
        b a web producer order 10 160
    ",
    );
    for told in [begins_another, outlasts] {
        assert!(!told.contains("pause="), "{told}");
        let last = told.lines().rfind(|line| line.trim_start().starts_with("1,")).expect("it has events");
        assert!(last.contains("Ed") && last.ends_with("t=0.1"), "{told}");
    }
}

/// Two messages side by side tell nothing of what their sender does: it waits for both.
#[test]
fn messages_side_by_side_are_waited_for() {
    let told = timed(
        "
        a - web server   GET    0 100
        b a web producer order 10  60
        c a web producer mail  11  80
    ",
    );
    assert!(told.contains("pause=0.05") && told.contains("pause=0.069"), "{told}");
}

#[test]
fn message_by_follows_from() {
    let got = events(
        "
        a - web  none GET        0 100
        c a mail none on_order  15  90 follows
    ",
    );
    assert_eq!(got.trim(), ASYNCHRONOUS.trim());
}

#[test]
fn message_by_link_into_another_trace() {
    let got = events(
        "
        a   - web  server   GET        0 100
        b   a web  producer order     10  11
        2/c - mail consumer on_order 150 190 link=1/b
    ",
    );
    assert_eq!(got.trim(), WAITED_FOR.trim());
}

#[test]
fn child_that_starts_after_its_parent_ended() {
    let got = events(
        "
        a - web  none GET        0 100 host=h
        c a mail none on_order 150 190 host=h
    ",
    );
    assert_eq!(got.trim(), ASYNCHRONOUS.trim());
}

#[test]
fn message_without_a_receiver() {
    assert_snapshot!(events("
        a - web server   GET    0 100
        b a web producer order 10  11 messaging.destination.name=orders
    "), @r#"
    operation "web GET" run=0000000000000001
    1,1,Be | web,1 op="GET"
    1,2,Ac | web,2
    1,3,Fk(2) | web,3
    1,4,Ac | web,4
    2,1,Be | orders,1 op="order"
    2,2,Ac | orders,2
    2,3,Ed | orders,3
    1,5,Ac | web,5
    1,6,Ed | web,6
    "#);
}

/// Asserts that the first visit ends after 100 ms.
fn ends_in_time(told: &str) {
    let last = told.lines().rfind(|line| line.trim_start().starts_with("1,")).expect("it has events");
    assert!(last.contains("Ed") && last.ends_with("t=0.1"), "{told}");
}

/// Of two requests the first answer is taken: the other one ends after the visit, which did not wait for it.
#[test]
fn a_call_that_ends_after_the_first_visit_is_not_waited_for() {
    let told = timed(
        "
        a - web server GET   0 100
        b a web client call 10  60
        c b one server ask  15  55
        d a web client call 12 180
        e d two server ask  17 175
    ",
    );
    assert!(told.contains("1,5,Fk") || told.contains("Fk(3)"), "{told}");
    ends_in_time(&told);
    let of_two = told.lines().find(|line| line.contains("two,1")).expect("it is called");
    assert!(of_two.contains("Be"), "{told}");
}

/// The events of a visit of 100 ms that has local work at these times, and nothing that waits for it.
fn beside_the_first_visit(begin: u32, end: u32) -> String {
    let told = timed(&format!("a - web server GET 0 100\nb a web internal flush {begin} {end}\n"));
    ends_in_time(&told);
    assert!(told.contains("Fk(2)") && !told.contains("Jn(2)"), "{told}");
    told
}

/// Local work that outlives the first visit goes on beside it.
#[test]
fn local_work_that_outlives_the_first_visit_is_a_branch() {
    beside_the_first_visit(90, 150);
}

/// What begins when the first visit has ended was handed on before that.
#[test]
fn local_work_that_begins_after_the_first_visit_puts_off_no_end() {
    let told = beside_the_first_visit(120, 150);
    let begin = told.lines().find(|line| line.contains("2,1,Be")).expect("it goes on");
    assert!(begin.ends_with("t=0.12"), "{told}");
}

/// Work that goes on beside the first visit waits for its own calls.
#[test]
fn local_work_that_outlives_the_first_visit_waits_for_its_calls() {
    let told = timed(
        "
        a - web server GET     0 100
        b a web internal flush 90 160
        c b web client call    110 150
        d c log server append  112 148
    ",
    );
    ends_in_time(&told);
    let of_log = told.lines().find(|line| line.contains("log,1")).expect("it is called");
    assert!(of_log.trim_start().starts_with("2,") && of_log.contains("Ac"), "{told}");
    assert!(told.contains("Fk(2)") && !told.contains("Fk(3)") && !told.contains("Jn(2)"), "{told}");
}

/// A call that ends late makes no late work of what is around it.
#[test]
fn what_is_around_a_late_call_is_no_branch() {
    let told = timed(
        "
        a - web server GET     0 100
        b a web internal handle 2 98
        c b web client call    20 150
        d c log server append  22 148
    ",
    );
    ends_in_time(&told);
    let handle = told.lines().find(|line| line.contains("handle")).expect("it is an activity");
    assert!(handle.trim_start().starts_with("1,"), "{told}");
}

#[test]
fn batch_of_messages() {
    let table = "
        a   - web  server   GET      0 100
        b   a web  producer order   10  11
        2/a - web  server   GET     20 120
        2/b a web  producer order   30  31
        3/c - mail consumer receive 40 50 messaging.operation=receive link=1/b link=2/b
        3/d c mail consumer work   150 190 messaging.operation=process link=2/b link=1/b
    ";
    assert_snapshot!(events(table), @r#"
    operation "web GET" run=0000000000000001
    1,1,Be | web,1 op="GET"
    1,2,Ac | web,2
    1,3,Fk(2) | web,3
    1,4,Ac | web,4
    2,1,Be | mail,1 op="work"
    2,2,Ac | mail,2
    2,3,Ed | mail,3
    1,5,Ac | web,5
    1,6,Ed | web,6
    operation "web GET" run=0000000000000002
    1,1,Be | web,1 op="GET"
    1,2,Ac | web,2
    1,3,Fk(2) | web,3
    1,4,Ac | web,4
    2,1,Be | mail,1 op="work"
    2,2,Ac | mail,2
    2,3,Ed | mail,3
    1,5,Ac | web,5
    1,6,Ed | web,6
    "#);
    assert_snapshot!(counted(table), @r"
    link without a message: 1
    message that came in a batch: 1
    span that waits for messages, and no more in its operation: left out: 1
    ");
}

#[test]
fn waiting_for_messages_is_no_call() {
    assert_snapshot!(events("
        a - mail internal loop     0 100
        b a mail client   receive 10  60 messaging.operation.type=receive messaging.destination.name=orders
        c b mail consumer work    60  90
    "), @r#"
    operation "mail loop" run=0000000000000001
    1,1,Be | mail,1 op="loop"
    1,2,Ac | mail,2
    1,3,Ac | mail,3 name="receive"
    1,4,Ac | mail,4
    1,5,Ac | mail,5 name="work"
    1,6,Ed | mail,6
    "#);
}

#[test]
fn forwarding() {
    assert_snapshot!(timed("
        a - web   server   GET   0 100
        b a web   client   call 10  90
        c b front server   ask  11  30
        d c front producer pass 25  26
        e d back  server   do   27  89
    "), @r#"
    operation "web GET" run=0000000000000001 start=1700000000000001000
    1,1,Be | web,1 op="GET" t=0
    1,2,Ac | web,2 t=0
    1,3,Ac | web,3 t=0.01
    1,4,Ac | front,1 op="ask" t=0.011
    1,5,Fk(2) | front,2 t=0.025
    1,6,Ac | front,3 t=0.025
    1,7,Ed | front,4 t=0.03
    2,1,Be | back,1 op="do" t=0.027
    2,2,Ac | back,2 t=0.027
    2,3,Fk(3) | back,3 t=0.089
    2,4,Ed | back,4 t=0.089
    3,1,Be | web,4 t=0.09
    3,2,Ac | web,5 t=0.09
    3,3,Ed | web,6 t=0.1
    "#);
}

#[test]
fn forwarding_twice_with_a_call_on_the_way() {
    assert_snapshot!(events("
        a  - web   server   GET    0 100
        b  a web   client   call  10  90
        c  b front server   ask   11  30
        d  c front client   pass  25  26
        e  d mid   server   do    27  50
        f  e mid   client   find  30  40
        10 f db    server   find  31  39
        11 e mid   producer pass  45  46
        12 11 back consumer do    47  89
    "), @r#"
    operation "web GET" run=0000000000000001
    1,1,Be | web,1 op="GET"
    1,2,Ac | web,2
    1,3,Ac | web,3
    1,4,Ac | front,1 op="ask"
    1,5,Fk(2) | front,2
    1,6,Ac | front,3
    1,7,Ed | front,4
    2,1,Be | mid,1 op="do"
    2,2,Ac | mid,2
    2,3,Ac | mid,3
    2,4,Ac | db,1 op="find"
    2,5,Ac | db,2
    2,6,Ac | mid,4
    2,7,Fk(3) | mid,5
    2,8,Ac | mid,6
    2,9,Ed | mid,7
    3,1,Be | back,1 op="do"
    3,2,Ac | back,2
    3,3,Fk(4) | back,3
    3,4,Ed | back,4
    4,1,Be | web,4
    4,2,Ac | web,5
    4,3,Ed | web,6
    "#);
}

#[test]
fn a_reply_that_explains_the_waiting_is_no_forwarding() {
    assert_snapshot!(events("
        a - web   server   GET   0 100
        b a web   client   call 10  90
        c b front server   ask  15  85
        d c front producer pass 25  26
        e d back  consumer do   27  89
    "), @r#"
    operation "web GET" run=0000000000000001
    1,1,Be | web,1 op="GET"
    1,2,Ac | web,2
    1,3,Ac | web,3
    1,4,Ac | front,1 op="ask"
    1,5,Fk(2) | front,2
    1,6,Ac | front,3
    2,1,Be | back,1 op="do"
    2,2,Ac | back,2
    2,3,Ed | back,3
    1,7,Ac | front,4
    1,8,Ac | front,5
    1,9,Ac | web,4
    1,10,Ed | web,5
    "#);
}

#[test]
fn overlapping_calls_are_branches() {
    assert_snapshot!(timed("
        a  - web server GET   0 100
        b  a web client one  10  40
        c  b x   server one  12  38
        d  a web client two  11  70
        e  d y   server two  13  68
        f  a web client more 45  60
        10 f x   server more 46  59
        11 a web client last 80  90
        12 11 x  server last 81  89
    "), @r#"
    operation "web GET" run=0000000000000001 start=1700000000000001000
    1,1,Be | web,1 op="GET" t=0
    1,2,Ac | web,2 t=0
    1,3,Fk(2) | web,3 t=0.01
    1,4,Fk(3) | web,4 t=0.011
    2,1,Be | web,5 t=0.01
    2,2,Ac | web,6 t=0.01
    2,3,Ac | x,1 op="one" t=0.012
    2,4,Ac | x,2 t=0.038
    2,5,Ac | web,7 t=0.04
    2,6,Ac | web,8 t=0.045
    2,7,Ac | x,3 op="more" t=0.046
    2,8,Ac | x,4 t=0.059
    2,9,Ac | web,9 t=0.06
    2,10,Ed | web,10 t=0.06
    3,1,Be | web,11 t=0.011
    3,2,Ac | web,12 t=0.011
    3,3,Ac | y,1 op="two" t=0.013
    3,4,Ac | y,2 t=0.068
    3,5,Ac | web,13 t=0.07
    3,6,Ed | web,14 t=0.07
    1,5,Jn(2) | web,15 t=0.06
    1,6,Jn(3) | web,16 t=0.07
    1,7,Ac | web,17 t=0.07
    1,8,Ac | web,18 t=0.08
    1,9,Ac | x,5 op="last" t=0.081
    1,10,Ac | x,6 t=0.089
    1,11,Ac | web,19 t=0.09
    1,12,Ed | web,20 t=0.1
    "#);
}

#[test]
fn a_branch_whose_reply_comes_in_another_thread_is_waited_for_there() {
    assert_snapshot!(events("
        a  - web server GET   0 100
        b  a web client one  10  40
        c  b x   server one  12  60
        d  a web client two  11  70
        e  d y   server two  13  68
    "), @r#"
    operation "web GET" run=0000000000000001
    1,1,Be | web,1 op="GET"
    1,2,Ac | web,2
    1,3,Fk(2) | web,3
    1,4,Fk(3) | web,4
    2,1,Be | web,5
    2,2,Ac | web,6
    2,3,Ac | x,1 op="one"
    2,4,Fk(4) | x,2
    2,5,Ac | x,3
    2,6,Ed | x,4
    4,1,Be | web,7
    4,2,Ac | web,8
    4,3,Ed | web,9
    3,1,Be | web,10
    3,2,Ac | web,11
    3,3,Ac | y,1 op="two"
    3,4,Ac | y,2
    3,5,Ac | web,12
    3,6,Ed | web,13
    1,5,Jn(4) | web,14
    1,6,Jn(3) | web,15
    1,7,Ac | web,16
    1,8,Ed | web,17
    "#);
}

/// Spans of calls may end a little after the answer was handed on: by a twentieth of the shorter of two calls in sequence, and by a millisecond at most.
#[test]
fn a_small_overlap_is_none() {
    let forks = |one: (f64, f64), two: (f64, f64)| {
        let table = format!(
            "a - web server GET 0 100
             b a web client one {} {}
             d a web client two {} {}",
            one.0, one.1, two.0, two.1
        );
        events(&table).matches("Fk").count()
    };
    assert_eq!(forks((10.0, 40.0), (39.0, 70.0)), 0);
    assert_eq!(forks((10.0, 40.0), (38.99, 70.0)), 2);
    // The shorter one counts, be it the first or the second, and one tick of the clock is always none.
    assert_eq!(forks((10.0, 40.0), (39.9, 41.9)), 0);
    assert_eq!(forks((10.0, 40.0), (39.89, 41.89)), 2);
    assert_eq!(forks((10.0, 12.0), (11.9, 70.0)), 0);
    assert_eq!(forks((10.0, 12.0), (11.89, 70.0)), 2);
    assert_eq!(forks((10.0, 10.005), (10.004, 10.009)), 0);
    assert_eq!(forks((10.0, 10.005), (10.003, 10.009)), 2);
}

/// Each of three calls in sequence ends a little after the next one began; beside them runs a long one, behind whose begin the others are in one branch.
#[test]
fn calls_in_sequence_that_overlap_a_little_are_one_branch() {
    let table = "
        a - web server GET   0 100
        b a web client one  10  40
        c a web client two  39.5 70
        d a web client three 69.5 90
        e a web client long 10.5 95
    ";
    let all = events(table);
    assert_eq!((all.matches("Fk").count(), all.matches("Jn").count()), (2, 2), "{all}");
}

#[test]
fn server_spans_alone() {
    let table = "
        a - web server GET   0 100
        c a db  server find 15  55
    ";
    assert_snapshot!(events(table), @r#"
    operation "web GET" run=0000000000000001
    1,1,Be | web,1 op="GET"
    1,2,Ac | web,2
    1,3,Ac | web,3
    1,4,Ac | db,1 op="find"
    1,5,Ac | db,2
    1,6,Ac | web,4
    1,7,Ed | web,5
    "#);
    assert_snapshot!(counted(table), @"call without a client span: 1");
}

#[test]
fn client_spans_alone() {
    let table = "
        a - web  server GET    0 100
        b a web  client find  10  20 db.system=mysql db.name=shop server.address=10.0.0.1
        c a web  client get   20  30 server.address=cache server.port=6379
        d a web  client ask   30  40 peer.service=search rpc.service=Search
        e a web  client /pkg.Stock/Count 40 50
        f a web  client what  50  60
        10 a web client read  60  70 http.url=http://user@img.example:8080/a?b
        11 a web client call  70  90
        12 11 shop client buy 75  85 peer.service=bank
        13 a web  client load  90  92 db.system=mysql server.address=orders-db.example server.port=3306
        14 a web  client take  92  94 db.system=redis net.peer.name=localhost
        15 a web  client drop  94  96 db.system=redis server.address=[::1]
    ";
    let tasks: Vec<String> = events(table)
        .lines()
        .filter(|line| line.contains("op="))
        .map(|line| line.split(" | ").nth(1).unwrap_or_default().to_owned())
        .collect();
    assert_snapshot!(tasks.join("\n"), @r#"
    web,1 op="GET"
    mysql/shop,1 op="find"
    cache:6379,1 op="get"
    search,1 op="ask"
    pkg.Stock,1 op="/pkg.Stock/Count"
    peer of web,1 op="what"
    img.example:8080,1 op="read"
    shop,1 op="call"
    bank,1 op="buy"
    mysql@orders-db.example,1 op="load"
    redis,1 op="take"
    redis,3 op="drop"
    "#);
    assert_snapshot!(counted(table), @"call without a server span: 11");
}

#[test]
fn a_lost_server_span_gets_the_name_that_others_like_it_have() {
    let got = events(
        "
        a   - web server GET  0 100
        b   a web client call 10 60
        c   b db  server find 15 55
        2/a - web server GET  200 300
        2/b a web client call 210 260
    ",
    );
    assert_eq!(got.matches("db,1 op=").count(), 2, "{got}");
}

#[test]
fn a_call_seen_at_two_levels_is_one() {
    assert_snapshot!(events("
        a - web    server   GET       0 100
        b a web    client   search   10  60 db.system=elastic
        c b web    internal encode   11  12
        d b web    client   HTTP_GET 15  58 server.address=es
    "), @r#"
    operation "web GET" run=0000000000000001
    1,1,Be | web,1 op="GET"
    1,2,Ac | web,2
    1,3,Ac | web,3 name="search"
    1,4,Ac | web,4 name="encode"
    1,5,Ac | web,5
    1,6,Ac | elastic,1 op="search"
    1,7,Ac | elastic,2
    1,8,Ac | web,6
    1,9,Ed | web,7
    "#);
}

#[test]
fn retries_are_as_many_calls() {
    assert_snapshot!(events("
        a - web server GET   0 100
        b a web client call 10  60
        c b web client try  11  20 peer.service=db
        d b web client try  30  50 peer.service=db
    "), @r#"
    operation "web GET" run=0000000000000001
    1,1,Be | web,1 op="GET"
    1,2,Ac | web,2
    1,3,Ac | web,3 name="call"
    1,4,Ac | web,4
    1,5,Ac | db,1 op="try"
    1,6,Ac | db,2
    1,7,Ac | web,5
    1,8,Ac | web,6
    1,9,Ac | db,3 op="try"
    1,10,Ac | db,4
    1,11,Ac | web,7
    1,12,Ed | web,8
    "#);
}

#[test]
fn local_spans_are_activities() {
    assert_snapshot!(events("
        a - web server   GET     0 100
        b a web internal render 10  60
        c b web client   find   20  40 peer.service=db
        d a web internal close  70  80
    "), @r#"
    operation "web GET" run=0000000000000001
    1,1,Be | web,1 op="GET"
    1,2,Ac | web,2
    1,3,Ac | web,3 name="render"
    1,4,Ac | web,4
    1,5,Ac | db,1 op="find"
    1,6,Ac | db,2
    1,7,Ac | web,5
    1,8,Ac | web,6 name="close"
    1,9,Ed | web,7
    "#);
}

#[test]
fn call_to_self_and_call_back() {
    assert_snapshot!(events("
        a - web server GET   0 100
        b a web client self 10  60
        c b web server self 15  55
        d c web client ask  20  50
        e d db  server ask  21  49
        f e db  client back 25  45
        10 f web server back 26 44
    "), @r#"
    operation "web GET" run=0000000000000001
    1,1,Be | web,1 op="GET"
    1,2,Ac | web,2
    1,3,Ac | web,3
    1,4,Ac | web.2,1 op="self"
    1,5,Ac | web.2,2
    1,6,Ac | db,1 op="ask"
    1,7,Ac | db,2
    1,8,Ac | web.3,1 op="back"
    1,9,Ac | web.3,2
    1,10,Ac | db,3
    1,11,Ac | db,4
    1,12,Ac | web.2,3
    1,13,Ac | web.2,4
    1,14,Ac | web,4
    1,15,Ed | web,5
    "#);
}

#[test]
fn spans_without_kinds() {
    let wanted = events(
        "
        a - web server GET   0 100
        b a web client call 10  60
        c b db  server find 15  55
    ",
    );
    assert_eq!(
        wanted,
        events(
            "
        a - web none GET   0 100
        b a web none call 10  60
        c b db  none find 15  55
    "
        )
    );
    assert_eq!(
        wanted,
        events(
            "
        a - web internal GET   0 100
        c a db  internal find 15  55
    "
        )
    );
}

#[test]
fn a_nested_server_span_is_local_unless_its_parent_is_remote() {
    let local = events(
        "
        a - web server GET  0 100
        b a web server MVC 10  60
    ",
    );
    assert!(local.contains("1,3,Ac | web,3 name=\"MVC\""), "{local}");
    let remote = events(
        "
        a - web server GET  0 100
        b a web server MVC 10  60 remote
    ",
    );
    assert!(remote.contains("1,4,Ac | web.2,1 op=\"MVC\""), "{remote}");
}

#[test]
fn the_first_span_calls() {
    assert_snapshot!(events("
        b - user client call 10  60
        c b web  server GET  15  55
    "), @r#"
    operation "user call" run=0000000000000001
    1,1,Be | user,1 op="call"
    1,2,Ac | user,2
    1,3,Ac | user,3
    1,4,Ac | web,1 op="GET"
    1,5,Ac | web,2
    1,6,Ac | user,4
    1,7,Ed | user,5
    "#);
}

#[test]
fn a_clock_that_is_off_is_corrected_and_told() {
    let table = "
        a   - web server GET    0 100
        b   a web client call  10  60
        c   b db  server find 715 755
        d   c db  client disk 720 750 peer.service=disk
    ";
    assert_snapshot!(timed(table), @r#"
    operation "web GET" run=0000000000000001 start=1700000000000001000
    1,1,Be | web,1 op="GET" t=0
    1,2,Ac | web,2 t=0
    1,3,Ac | web,3 t=0.01
    1,4,Ac | db,1 op="find" t=0.015
    1,5,Ac | db,2 t=0.02
    1,6,Ac | disk,1 op="disk" t=0.02
    1,7,Ac | disk,2 t=0.05
    1,8,Ac | db,3 t=0.05
    1,9,Ac | db,4 t=0.055
    1,10,Ac | web,4 t=0.06
    1,11,Ed | web,5 t=0.1
    "#);
    let outcome = super::dsl::read_rows(table);
    let skew = outcome.report.findings.iter().find(|finding| finding.code.0 == "T115").expect("told");
    assert_eq!(skew.message, "the clock of db is 700.000 ms ahead of that of web");
}

#[test]
fn one_machine_has_one_clock() {
    let got = events(
        "
        a - web server GET    0 100 host=h
        b a web client call  10  60 host=h
        c b db  server find  70  80 host=h
    ",
    );
    assert!(got.contains("Fk(2) | web"), "work that begins after the call ended is asynchronous: {got}");
}
