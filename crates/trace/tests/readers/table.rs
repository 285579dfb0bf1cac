//! Spans as tables, as data sets have them.

use std::sync::Arc;

use dyelog_diagnostic::names::Names;
use dyelog_trace::Format;
use dyelog_trace::spans::{self, SpanOptions, TableMapping};

use super::show::{listed, operations, recorded, recorded_as, shown};

#[test]
fn columns_by_their_names() {
    let comma = "trace_id,span_id,parent_span_id,service,operation,kind,start_us,duration_us
1,a,,web,\"GET /, all\",server,1700000000000000,900
1,b,a,web,find,client,1700000000000100,500.25
1,c,b,db,find,SPAN_KIND_SERVER,1700000000000200,300
";
    let wanted = recorded(comma.as_bytes());
    insta::assert_snapshot!("table_columns", wanted);
    // Other names, other units, other separators, other order.
    let other = "Duration (ms);StartTimeUnixNano;Service-Name;TraceID;ParentID;SpanID;name;SpanType;unused
0.9;1700000000000000000;web;1;root;a;GET /, all;Entry;x
0.50025;1700000000000100000;web;1;a;b;find;Exit;
0.3;1700000000000200000;db;1;b;c;find;ENTRY;
";
    assert_eq!(recorded(other.as_bytes()), wanted);
}

#[test]
fn data_sets() {
    let nezha = "TraceID,SpanID,ParentID,PodName,OperationName,StartTimeUnixNano,EndTimeUnixNano,Duration
8f2a,a1,root,frontend-579b9bff58-t2dbm,hipstershop.Frontend/Recv.,1661258400000000000,1661258400009000000,9000
8f2a,a2,a1,frontend-579b9bff58-t2dbm,hipstershop.CartService/GetCart,1661258400001000000,1661258400005000000,4000
8f2a,a3,a2,cartservice-7f5b8c9d6b-x9x2k,hipstershop.CartService/GetCart,1661258400002000000,1661258400004000000,2000
";
    insta::assert_snapshot!("table_nezha", recorded(nezha.as_bytes()));
    let deeptralog = "StartTime,EndTime,URL,SpanType,Service,SpanId,TraceId,Peer,ParentSpan,Component,IsError
1627001000000,1627001000120,{POST}/api/v1/preserve,Entry,ts-preserve,s1.0,t1,,-1,SpringMVC,False
1627001000010,1627001000060,/api/v1/ticketinfo/Shang Hai,Exit,ts-preserve,s1.1,t1,ts-ticketinfo:15681,s1.0,SpringRestTemplate,False
1627001000015,1627001000055,{GET}/api/v1/ticketinfo/{name},Entry,ts-ticketinfo,s2.0,t1,,s1.1,SpringMVC,True
";
    insta::assert_snapshot!("table_deeptralog", recorded(deeptralog.as_bytes()));
    let aiops = "timestamp,cmdb_id,span_id,trace_id,duration,type,status_code,operation_name,parent_span
1647705600361,frontend-0,a652d4d10e9478fc,9451fd8fdf746a80687451dae4c4e984,49877,rpc,0,hipstershop.CartService/GetCart,952754a738a11675
";
    insta::assert_snapshot!("table_aiops", recorded(aiops.as_bytes()));
}

/// Of what `SkyWalking` exports, the library tells messages from calls.
#[test]
fn messages_of_deeptralog() {
    let text = "StartTime,EndTime,URL,SpanType,Service,SpanId,TraceId,Peer,ParentSpan,Component,IsError
1627001000000,1627001000120,{POST}/buy,Entry,front,s1.0,t1,,-1,SpringMVC,False
1627001000010,1627001000012,RabbitMQ/orders,Exit,front,s1.1,t1,rabbit:5672,s1.0,rabbitmq-producer,False
1627001000015,1627001000055,RabbitMQ/orders,Entry,mail,s2.0,t1,,s1.1,rabbitmq-consumer,False
";
    let found = recorded(text.as_bytes());
    let kinds: Vec<bool> = ["producer", "consumer"].iter().map(|kind| found.contains(kind)).collect();
    assert_eq!(kinds, [true, true], "{found}");
}

#[test]
fn tables_that_stores_of_traces_give_out() {
    let honeycomb =
        "Timestamp,SampleRate,duration_ms,name,service.name,span.kind,trace.parent_id,trace.span_id,trace.trace_id
2023-11-14T22:13:20.5Z,4,12.5,GET /,web,server,,a,t1
2023-11-14T22:13:20.501Z,4,2,find,web,client,a,b,t1
";
    insta::assert_snapshot!("table_honeycomb", recorded(honeycomb.as_bytes()));
    let clickhouse = r#"Timestamp,TraceId,SpanId,ParentSpanId,TraceState,SpanName,SpanKind,ServiceName,ResourceAttributes,SpanAttributes,Duration,StatusCode
2023-11-14 22:13:20.000000001,t1,a,,"ot=th:c",GET /,Server,web,"{'host.name':'h1'}","{'http.route':'/'}",12500000,Unset
2023-11-14 22:13:20.001,t1,b,a,"ot=th:c",SELECT,Client,web,"{'host.name':'h1'}","{'db.system':'mysql','db.statement':'SELECT
  ""a""'}",2000000,Error
"#;
    insta::assert_snapshot!("table_clickhouse", recorded(clickhouse.as_bytes()));
}

#[test]
fn fields_over_several_lines() {
    let text = "trace,span,parent,service,name,start_us,duration_us
1,a,,web,\"GET
/ \"\"x\"\"\",1700000000000000,5
1,b,a,web,5\" disk,1700000000000001,1
1,c,a,web,\"never ends,1700000000000001,1
1,d,a,web,last,1700000000000002,1
";
    insta::assert_snapshot!("table_lines", recorded(text.as_bytes()));
}

#[test]
fn both_sides_of_calls() {
    // Of 2021: the names of a side may be lost, a response time may be below the resolution, a side may be missing.
    let text = ",traceid,timestamp,rpcid,um,rpctype,dm,interface,rt
0,t1,1000,0,USER,http,front,/buy,20
1,t1,1000,0,(?),http,front,/buy,-19
2,t1,1002,0.1,front,rpc,cart,add,9
3,t1,1003,0.1,front,rpc,(?),add,-7
4,t1,1004,0.1.1,cart,mc,cache,get,1
5,t1,1012,0.2,front,rpc,price,of,0
6,t1,1012,0.2,front,rpc,price,of,0
7,t1,1013,0.3,front,mq,mail,topic,-400
8,t1,1014,0.4,front,rpc,stock,take,4
9,t1,1015,0.4.1,stock,db,mysql,update,2
10,t1,x,0.5,front,rpc,a,b,1
11,,1,0.5,front,rpc,a,b,1
";
    insta::assert_snapshot!("table_calls", recorded(text.as_bytes()));
    let newer = "timestamp,traceid,service,rpc_id,um,uminstanceid,rpctype,interface,dm,dminstanceid,rt
1000,t1,S1,0,USER,u,http,/buy,front,f,-19.5
1002,t1,S1,0.1,front,f,rpc,add,cart,c,9.25
";
    insta::assert_snapshot!("table_calls_2022", recorded(newer.as_bytes()));
    let (_, operations, _) = operations(&[("t", text.as_bytes())]).expect("it reads");
    assert_eq!(operations.len(), 1, "all hangs on the first call");
}

#[test]
fn damaged_tables() {
    let text = "trace,span,parent,service,start,duration
1,a,,web,10,5
1,b,a,web,soon,5
1,c,a,web,11
,d,a,web,11,1
1,e,a,\"we
b\",11,1
1,f,a,,12,1,9,9,9
1,g,a,web,1e400,1
1,h,a,web,13,-1
";
    insta::assert_snapshot!("table_damaged", recorded(text.as_bytes()));
    insta::assert_snapshot!("table_no_column", recorded(b"trace_id,span_id,begin,took\n1,a,3,4\n"));
    insta::assert_snapshot!("table_empty", recorded_as(Format::SpansCsv, b"\n# nothing\n"));
}

/// The spans of a table that a mapping describes.
fn mapped(mapping: &TableMapping, text: &str) -> String {
    let options = SpanOptions { table: Some(Arc::new(mapping.clone())), ..SpanOptions::default() };
    let mut names = Names::new();
    match spans::collect_with(Format::SpansCsv, "t", text.as_bytes(), &options, &mut names) {
        Ok((spans, report)) => shown(&names, &spans, &report),
        Err(reasons) => listed(&reasons),
    }
}

#[test]
fn a_mapping_says_what_columns_are() {
    // No header, an epoch, units, markers of roots, names of kinds.
    let slate = TableMapping::parse(
        "slate.toml",
        r#"
            header = false
            separator = "|"
            epoch = "2022-08-23T00:00:00Z"
            roots = ["^"]
            absent = ["?"]
            [columns]
            trace = 1
            span = 2
            parent = 3
            service = 4
            name = 5
            kind = 6
            start = 7
            duration = 8
            [units]
            time = "ms"
            duration = "us"
            [kinds]
            S = "server"
            C = "client"
        "#,
    )
    .expect("it is sound");
    let text = "t1|a|^|web|GET /|S|1000.5|900\nt1|b|a|web|find|C|1000.6|500.25\nt1|c|b|?|find|S|1000.7|300\n";
    insta::assert_snapshot!("table_mapped", mapped(&slate, text));
    insta::assert_snapshot!(
        "table_mapped_lacks",
        mapped(&TableMapping::preset("nezha").expect("it ships"), "TraceID,SpanID\n1,2\n")
    );
}

#[test]
fn faulty_mappings() {
    let faults = [
        "[columns]\ntrace = \"a\"\nsapn = \"b\"\n[units]\ntime = \"h\"\nspan = \"ms\"\n[kinds]\nS = \"srv\"",
        "epoch = \"soon\"\nseparator = \"--\"\nheader = false\n[columns]\ntrace = \"a\"",
        "[columns]\ntrace = true",
        "colums = 3",
    ];
    let found: Vec<String> = faults
        .iter()
        .map(|text| TableMapping::parse("m.toml", text).map_or_else(|found| listed(&found), |_| "sound".into()))
        .collect();
    insta::assert_snapshot!("table_faulty_mappings", found.join("\n"));
}

#[test]
fn mappings_that_ship_are_sound() {
    for name in TableMapping::presets() {
        let mapping = TableMapping::preset(name).expect("it ships");
        assert_eq!(mapping.name(), name);
    }
}
