//! Requests that a page of another site makes a browser send.
//!
//! A browser on this machine reaches what listens on loopback, for whatever page it shows. Such a page must neither change anything here, nor read anything under a name of
//! its own that leads to this machine.

use std::net::IpAddr;

use axum::extract::Request;
use axum::http::header::{HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Method, StatusCode};

/// Why a request is not answered; `None` where it is. `is_closed` says whether tokens are asked for, which no page has.
pub fn refused(request: &Request, is_closed: bool) -> Option<(StatusCode, &'static str)> {
    let host = authority(request);
    let is_safe = matches!(*request.method(), Method::GET | Method::HEAD);
    if !is_safe && is_foreign(request.headers(), host.as_ref()) {
        return Some((StatusCode::FORBIDDEN, "pages of other sites change nothing here\n"));
    }
    if !is_closed && host.is_some_and(|host| !is_own(host.host())) {
        return Some((
            StatusCode::MISDIRECTED_REQUEST,
            "without tokens, this is asked by an address or as localhost: a name may be anybody's\n",
        ));
    }
    None
}

/// What the client takes this server for.
fn authority(request: &Request) -> Option<Authority> {
    let named = || request.headers().get(HOST)?.to_str().ok()?.parse().ok();
    request.uri().authority().cloned().or_else(named)
}

/// Whether a browser says that another site asks.
fn is_foreign(headers: &HeaderMap, host: Option<&Authority>) -> bool {
    let Some(origin) = headers.get(ORIGIN) else { return false };
    let own = origin.to_str().ok().and_then(|origin| origin.split_once("://")).map(|(_, own)| own);
    !own.zip(host).is_some_and(|(own, host)| own.eq_ignore_ascii_case(host.as_str()))
}

/// Whether a name cannot be one that somebody else had registered: a number, this machine, or one without a dot.
fn is_own(host: &str) -> bool {
    let plain = host.trim_start_matches('[').trim_end_matches(']');
    let name = plain.trim_end_matches('.').to_ascii_lowercase();
    plain.parse::<IpAddr>().is_ok() || !name.contains('.') || name.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::extract::Request;

    use super::refused;

    fn status(method: &str, host: &str, origin: Option<&str>, is_closed: bool) -> u16 {
        let mut request = Request::builder().method(method).uri("/services/init").header("host", host);
        if let Some(origin) = origin {
            request = request.header("origin", origin);
        }
        let request = request.body(Body::empty()).expect("it is a request");
        refused(&request, is_closed).map_or(200, |(status, _)| status.as_u16())
    }

    #[test]
    fn pages_of_other_sites_change_nothing() {
        let own = "127.0.0.1:4318";
        assert_eq!(status("POST", own, None, false), 200);
        assert_eq!(status("POST", own, Some("http://127.0.0.1:4318"), false), 200);
        for origin in ["http://evil.example", "null", "http://127.0.0.1:8080", "http://127.0.0.1:4318.evil.example"] {
            assert_eq!(status("POST", own, Some(origin), false), 403, "{origin}");
            assert_eq!(status("DELETE", own, Some(origin), true), 403, "{origin}");
            assert_eq!(status("GET", own, Some(origin), false), 200, "{origin}");
        }
    }

    #[test]
    fn names_that_lead_here_are_answered_where_tokens_are_asked_for() {
        for own in ["localhost:4318", "[::1]:4318", "collector:4318", "127.0.0.1", "shop.localhost"] {
            assert_eq!(status("GET", own, None, false), 200, "{own}");
        }
        for other in ["evil.example:4318", "127.0.0.1.evil.example", "evil.example."] {
            assert_eq!(status("GET", other, None, false), 421, "{other}");
            assert_eq!(status("POST", other, Some(&format!("http://{other}")), false), 421, "{other}");
            assert_eq!(status("GET", other, None, true), 200, "{other}");
        }
    }
}
