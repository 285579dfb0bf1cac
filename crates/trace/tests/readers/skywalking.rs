//! `SkyWalking` segments and answers.

use super::show::recorded;

#[test]
fn segments_and_answers() {
    let segments = r#"[
     {"traceId":"t.1","traceSegmentId":"s1","service":"web","serviceInstance":"web-1","spans":[
       {"spanId":0,"parentSpanId":-1,"startTime":1700000000000,"endTime":"1700000000100","operationName":"{GET}/","spanType":"Entry","spanLayer":"Http","componentId":1,"isError":false,"refs":[],
        "tags":[{"key":"http.method","value":"GET"}]},
       {"spanId":1,"parentSpanId":0,"startTime":1700000000010,"endTime":1700000000060,"operationName":"/find/17","spanType":1,"spanLayer":3,"peer":"db:8080","isError":true},
       {"spanId":2,"parentSpanId":0,"startTime":1700000000070,"endTime":1700000000071,"operationName":"mail","spanType":"Exit","spanLayer":"MQ","peer":"kafka"}]},
     {"traceId":"t.1","traceSegmentId":"s2","service":"db","serviceInstance":"db-1","isSizeLimited":true,"spans":[
       {"spanId":0,"parentSpanId":-1,"startTime":1700000000015,"endTime":1700000000055,"operationName":"{GET}/find","spanType":"0","spanLayer":"Http",
        "refs":[{"refType":"CrossProcess","traceId":"t.1","parentTraceSegmentId":"s1","parentSpanId":1,"parentService":"web"}]},
       {"spanId":1,"parentSpanId":0,"startTime":1700000000020,"endTime":1700000000050,"operationName":"scan","spanType":2}]},
     {"traceId":"t.2","traceSegmentId":"s3","service":"mail","spans":[
       {"spanId":0,"parentSpanId":-1,"startTime":1700000000090,"endTime":1700000000095,"operationName":"send","spanType":"Entry","spanLayer":4,
        "refs":[{"refType":0,"traceId":"t.1","parentTraceSegmentId":"s1","parentSpanId":2}]},
       "no span",{"spanId":"x"}]},
     7]"#;
    insta::assert_snapshot!("skywalking_segments", recorded(segments.as_bytes()));
    let answer = r#"{"data":{"trace":{"spans":[
       {"traceId":"t.1","segmentId":"s1","spanId":0,"parentSpanId":-1,"refs":[],"serviceCode":"web","serviceInstanceName":"web-1","startTime":1700000000000,"endTime":1700000000100,"endpointName":"{GET}/","type":"Entry","layer":"Http"},
       {"traceId":"t.1","segmentId":"s2","spanId":0,"parentSpanId":-1,"refs":[{"traceId":"t.1","parentSegmentId":"s1","parentSpanId":0,"type":"CROSS_PROCESS"}],"serviceCode":"db","startTime":1700000000015,"endTime":1700000000055,"endpointName":"find","type":"Entry","isError":true}]}}}"#;
    insta::assert_snapshot!("skywalking_answer", recorded(answer.as_bytes()));
}
