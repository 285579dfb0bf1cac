"""Answers of its own to the questions in on_call/, from Jaeger JSON as it stands; shares no code with the program.

    on_call.py mutate KIND IN OUT     KIND: none | drop (1% of the spans) | shift (one host's clock, by -10 ms)
    on_call.py answer QUESTION IN     rows as CSV, sorted

Where clocks of hosts differ, times are corrected as the book says (Spans, Clocks): each call between a client and a server span bounds
what the clocks differ by, and the middle of the first range that satisfies most bounds is taken out.
"""

import gzip
import json
import sys
import zlib
from collections import Counter, defaultdict


def load(path):
    opened = gzip.open(path) if path.endswith(".gz") else open(path, "rb")
    with opened as file:
        return json.load(file)


def mutate(kind, source, target):
    document = load(source)
    # The first host in the order of letters that is not that of a root.
    hosts, roots = set(), set()
    for trace in document["data"]:
        for span in trace["spans"]:
            host = host_of(trace, span)
            hosts.add(host)
            if not span["references"]:
                roots.add(host)
    moved = sorted(hosts - roots)[0]
    for trace in document["data"]:
        if kind == "drop":
            trace["spans"] = [s for s in trace["spans"] if zlib.crc32((trace["traceID"] + s["spanID"]).encode()) % 100]
        for span in trace["spans"]:
            if kind == "shift" and host_of(trace, span) == moved:
                span["startTime"] -= 10_000
    with open(target, "w") as file:
        json.dump(document, file)


def tag(tags, key):
    return next((one["value"] for one in tags if one["key"] == key), None)


def host_of(trace, span):
    return tag(trace["processes"][span["processID"]]["tags"], "hostname")


class Span:
    def __init__(self, trace, raw):
        self.trace, self.id = trace["traceID"], raw["spanID"]
        self.service = trace["processes"][raw["processID"]]["serviceName"]
        self.host = host_of(trace, raw)
        self.name = raw["operationName"]
        self.start = raw["startTime"] * 1000
        self.duration = raw["duration"] * 1000
        self.end = self.start + self.duration
        self.above = raw["references"][0]["spanID"] if raw["references"] else None
        self.kind = tag(raw["tags"], "span.kind")
        self.code = tag(raw["tags"], "http.status_code")
        self.parent, self.children, self.shift = None, [], 0


def spans_of(path):
    spans = []
    for trace in load(path)["data"]:
        own = {raw["spanID"]: Span(trace, raw) for raw in trace["spans"]}
        for span in own.values():
            span.parent = own.get(span.above)
            if span.parent:
                span.parent.children.append(span)
        spans.extend(own.values())
    correct(spans)
    for span in spans:
        span.children.sort(key=lambda child: (child.start, child.id))
    return spans


def correct(spans):
    """Takes out what the clocks of hosts differ by."""
    bounds = defaultdict(list)
    for span in spans:
        caller = span.parent
        if span.kind == "server" and caller and caller.kind == "client" and caller.host != span.host:
            low, high = caller.start - span.start, caller.end - span.end
            if low <= high:
                bounds[caller.host, span.host].append((low, high))
    offsets = {}
    for pair, all_bounds in bounds.items():
        edges = sorted((edge, closes) for low, high in all_bounds for edge, closes in ((low, False), (high, True)))
        open_now, most, offset = 0, 0, 0
        for place, (edge, closes) in enumerate(edges):
            if closes:
                open_now -= 1
                continue
            open_now += 1
            if open_now > most:
                end = edges[place + 1][0] if place + 1 < len(edges) else edge
                most, offset = open_now, edge + (end - edge) // 2
        if most > sum(low <= 0 <= high for low, high in all_bounds):
            offsets[pair] = offset
    if not offsets:
        return
    roots = [span for span in spans if not span.parent]
    while roots:
        span = roots.pop()
        if span.parent:
            span.shift = span.parent.shift + offsets.get((span.parent.host, span.host), 0)
        span.start += span.shift
        span.end += span.shift
        roots.extend(span.children)


def alone(span):
    """The stretches in which no child ran."""
    at, stretches = span.start, []
    for child in span.children:
        if min(child.start, span.end) > at:
            stretches.append((at, min(child.start, span.end)))
        at = max(at, child.end)
    if at < span.end:
        stretches.append((at, span.end))
    return stretches


def self_time(spans):
    longest = defaultdict(int)
    for span in spans:
        own = sum(end - start for start, end in alone(span))
        longest[span.service] = max(longest[span.service], own)
    return longest.items()


def repeated_calls(spans):
    found = defaultdict(list)
    for span in spans:
        for callee, count in Counter(child.service for child in span.children).items():
            if count > 1:
                found[span.name, callee].append(count)
    return [(*key, max(counts), len(counts)) for key, counts in found.items()]


def retries(spans):
    times, helped = Counter(), Counter()
    for span in spans:
        for one, other in zip(span.children, span.children[1:]):
            if one.duration > 3_000_000 and one.service == other.service:
                times[other.service] += 1
                helped[other.service] += other.duration <= 3_000_000
    return [(service, times[service], helped[service]) for service in times]


def by_status(spans):
    return [(*key, n) for key, n in Counter((s.service, s.name, s.code) for s in spans if s.code is not None).items()]


def p99(spans):
    durations = defaultdict(list)
    for span in spans:
        durations[span.service, span.name].append(span.duration)
    rows = []
    for key, values in durations.items():
        values.sort()
        rows.append((*key, len(values), values[-(-len(values) * 99 // 100) - 1]))
    return rows


def critical_path(root):
    """Who the response waits for: CRISP, §3, each child as far as it lies within its parent."""
    path, work = [], [(root, root.start, root.end)]
    while work:
        span, begin, at = work.pop()
        inside = [(min(c.end, at), max(c.start, begin), c) for c in span.children]
        inside = sorted((one for one in inside if one[1] < one[0]), key=lambda one: one[:2])
        while inside:
            end, start, child = inside.pop()
            if end > at:
                continue
            path.append((span, at - end))
            work.append((child, start, end))
            at = start
        path.append((span, at - begin))
    return [(span, time) for span, time in path if time > 0]


def critical_owner(spans):
    total, wins = Counter(), Counter()
    for root in (span for span in spans if not span.parent):
        own = Counter()
        for span, time in critical_path(root):
            own[span.service] += time
        total.update(own)
        most = max(own.values(), default=0)
        wins.update(service for service in own if own[service] == most)
    return [(service, total[service], wins[service]) for service in total]


def of_each(spans, value):
    most = defaultdict(int)
    for span in spans:
        found = value(span)
        if found is not None:
            most[span.service, span.name] = max(most[span.service, span.name], found)
    return [(*key, found) for key, found in most.items()]


def fan_out(spans):
    return of_each(spans, lambda span: len(span.children) or None)


def gaps(spans):
    return of_each(spans, lambda s: max((e - f for f, e in alone(s)), default=None) if s.children else None)


def at_once(span):
    edges = sorted([(c.end, 0) for c in span.children if c.duration] + [(c.start, 1) for c in span.children if c.duration])
    now = most = 0
    for _, opens in edges:
        now += 1 if opens else -1
        most = max(most, now)
    return max(most, 1)


def concurrency(spans):
    return of_each(spans, lambda span: at_once(span) if span.children else None)


def orphans(spans):
    return Counter(span.service for span in spans if span.above and not span.parent).items()


def main():
    if sys.argv[1] == "mutate":
        mutate(*sys.argv[2:])
        return
    rows = globals()[sys.argv[2]](spans_of(sys.argv[3]))
    for line in sorted(",".join(str(field) for field in row) for row in rows):
        print(line)


main()
