//! Carriers in headers of HTTP.

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::chain::Carrier;
use crate::state;

/// The header that names the chain of a request.
pub const HEADER: HeaderName = HeaderName::from_static("dyelog-chain");

impl Carrier {
    /// Puts the carrier into the headers of a request.
    ///
    /// ```
    /// use dyelog_probe::Carrier;
    ///
    /// let carrier: Carrier = "0123456789abcdef0123456789abcdef.5".parse()?;
    /// let mut headers = http::HeaderMap::new();
    /// carrier.inject(&mut headers);
    /// assert_eq!(Carrier::extract(&headers), Some(carrier));
    /// # Ok::<(), dyelog_probe::NotACarrier>(())
    /// ```
    pub fn inject(&self, headers: &mut HeaderMap) {
        if let Ok(value) = HeaderValue::try_from(self.to_string()) {
            headers.insert(HEADER, value);
        }
    }

    /// The carrier in the headers of a request. A header that names no chain counts as none, and is counted in
    /// [`Summary::bad_carriers`](crate::Summary::bad_carriers).
    pub fn extract(headers: &HeaderMap) -> Option<Self> {
        let value = headers.get(HEADER)?;
        let carrier = value.to_str().ok().and_then(|text| text.parse().ok());
        if carrier.is_none() {
            state::count(|counts| &counts.bad_carriers);
        }
        carrier
    }
}
