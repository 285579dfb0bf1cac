//! Access rights: tokens to put, to read and to administer.

use std::fmt;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Brings traces and metrics.
    Put,
    /// Reads models and figures.
    Read,
    /// Deletes and imports.
    Admin,
}

/// The tokens; without any, all may do all.
#[derive(Default)]
pub struct Access {
    tokens: RwLock<Vec<(Act, String)>>,
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").field("tokens", &self.tokens().len()).finish()
    }
}

/// The fewest characters of a token.
const SHORTEST: usize = 16;

impl Access {
    /// From lines of `put TOKEN`, `read TOKEN` and `admin TOKEN`; blank lines and lines after `#` are left out.
    ///
    /// # Errors
    /// What is wrong with which line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut tokens = Vec::new();
        for (number, line) in text.lines().enumerate().map(|(number, line)| (number + 1, line.trim())) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let mut words = line.split_whitespace();
            let act = match words.next() {
                Some("put") => Act::Put,
                Some("read") => Act::Read,
                Some("admin") => Act::Admin,
                _ => return Err(format!("line {number} begins with none of put, read and admin")),
            };
            match (words.next(), words.next()) {
                (Some(token), None) if token.len() >= SHORTEST => tokens.push((act, token.to_owned())),
                (Some(_), None) => {
                    return Err(format!("the token of line {number} has fewer than {SHORTEST} characters"));
                }
                _ => return Err(format!("line {number} does not have one token")),
            }
        }
        if tokens.is_empty() { Err("there is no token".to_owned()) } else { Ok(Self { tokens: RwLock::new(tokens) }) }
    }

    fn tokens(&self) -> RwLockReadGuard<'_, Vec<(Act, String)>> {
        self.tokens.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on the tokens of another one hold, and its own no longer.
    pub fn replace(&self, other: Self) {
        let tokens = other.tokens.into_inner().unwrap_or_else(PoisonError::into_inner);
        *self.tokens.write().unwrap_or_else(PoisonError::into_inner) = tokens;
    }

    /// Whether tokens are asked for.
    pub fn is_closed(&self) -> bool {
        !self.tokens().is_empty()
    }

    /// Whether a request with this `Authorization` may do that. An administrator may also read. What only reads may also carry its token as the password
    /// of a user of any name, since browsers can: they send that with each request, also with one that another site made them send, so that it allows nothing else.
    pub fn allows(&self, act: Act, only_reads: bool, authorization: Option<&str>) -> bool {
        if !self.is_closed() {
            return true;
        }
        let Some((scheme, given)) = authorization.and_then(|text| text.split_once(' ')) else { return false };
        let given = match scheme {
            _ if scheme.eq_ignore_ascii_case("bearer") => Some(given.trim().as_bytes().to_vec()),
            _ if scheme.eq_ignore_ascii_case("basic") && act == Act::Read && only_reads => password(given.trim()),
            _ => None,
        };
        let Some(given) = given else { return false };
        // All are compared, each in a time that tells nothing of where it differs.
        self.tokens().iter().fold(false, |found, (own, token)| {
            let fits = *own == act || *own == Act::Admin && act == Act::Read;
            found | (same(token.as_bytes(), &given) & fits)
        })
    }
}

/// The password of `user:password` in base64 (RFC 7617, §2).
fn password(text: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut word, mut bits) = (Vec::with_capacity(text.len()), 0_u32, 0);
    for digit in text.trim_end_matches('=').bytes() {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        (word, bits) = (word << 6 | u32::from(value), bits + 6);
        if bits >= 8 {
            bits -= 8;
            bytes.push((word >> bits) as u8);
        }
    }
    let colon = bytes.iter().position(|byte| *byte == b':')?;
    Some(bytes.split_off(colon + 1))
}

fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differing, (a, b)| differing | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::{Access, Act};

    #[test]
    fn tokens_are_replaced_while_the_server_runs() {
        let access = Access::parse("put 0123456789abcdef").expect("these are tokens");
        let allows = |token: &str| access.allows(Act::Put, false, Some(&format!("Bearer {token}")));
        assert!(allows("0123456789abcdef") && !allows("fedcba9876543210"));
        access.replace(Access::parse("put fedcba9876543210").expect("these are tokens"));
        assert!(!allows("0123456789abcdef") && allows("fedcba9876543210"));
    }

    #[test]
    fn each_token_allows_its_own_acts() {
        let access =
            Access::parse("# of ours\nput 0123456789abcdef\n\nadmin fedcba9876543210\n").expect("these are tokens");
        let allows = |act, token: &str| access.allows(act, false, Some(&format!("Bearer {token}")));
        assert!(allows(Act::Put, "0123456789abcdef") && !allows(Act::Read, "0123456789abcdef"));
        assert!(allows(Act::Admin, "fedcba9876543210") && allows(Act::Read, "fedcba9876543210"));
        assert!(!allows(Act::Put, "fedcba9876543210") && !allows(Act::Put, "0123456789abcde"));
        assert!(!access.allows(Act::Read, true, None) && !access.allows(Act::Read, true, Some("Basic x")));
        assert!(Access::default().allows(Act::Admin, false, None));
    }

    #[test]
    fn a_password_allows_to_read_and_nothing_else() {
        let access = Access::parse("put 0123456789abcdef\nread read-0123456789a\nadmin fedcba9876543210\n")
            .expect("they are tokens");
        let allows = |act, only_reads, text: &str| access.allows(act, only_reads, Some(text));
        // `me:read-0123456789a`, `:fedcba9876543210` and `me:0123456789abcdef`.
        let (read, admin, put) = (
            "Basic bWU6cmVhZC0wMTIzNDU2Nzg5YQ==",
            "basic OmZlZGNiYTk4NzY1NDMyMTA=",
            "Basic bWU6MDEyMzQ1Njc4OWFiY2RlZg==",
        );
        assert!(allows(Act::Read, true, read) && allows(Act::Read, true, admin));
        assert!(!allows(Act::Read, false, read) && !allows(Act::Read, true, put));
        assert!(!allows(Act::Admin, true, admin) && !allows(Act::Admin, false, admin) && !allows(Act::Put, false, put));
        for wrong in
            ["Basic", "Basic ", "Basic cmVhZC0wMTIzNDU2Nzg5YQ==", "Basic bWU6cmVhZC0wMTIzNDU2Nzg5", "Basic \u{e9}"]
        {
            assert!(!allows(Act::Read, true, wrong), "{wrong}");
        }
    }

    #[test]
    fn what_is_no_list_of_tokens() {
        let wrong = |text: &str| Access::parse(text).unwrap_err();
        assert_eq!(wrong(""), "there is no token");
        assert_eq!(wrong("write 0123456789abcdef"), "line 1 begins with none of put, read and admin");
        assert_eq!(wrong("\nput short"), "the token of line 2 has fewer than 16 characters");
        assert_eq!(wrong("put 0123456789abcdef x"), "line 1 does not have one token");
    }
}
