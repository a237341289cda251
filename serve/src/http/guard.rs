//! What every request is checked for before anything else, and what every answer says to browsers.
//!
//! The server is for programs and for its own console. A page of another origin gets nothing: a name that leads here
//! by the trick of another site (DNS rebinding) is refused by its `Host`, a request of another site's page by its
//! `Origin`, and no answer has a header of CORS.

use std::net::IpAddr;

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};

use super::failure::{Failure, Result};

/// The names under which the server is reached.
#[derive(Debug, Clone, Default)]
pub(super) struct Names {
    /// Scheme and authority of the URL that a proxy serves it at, such as `https` and `memory.example.org`.
    public: Option<(String, String)>,
    /// Other names that may stand in `Host`.
    hosts: Vec<String>,
    /// Whether connections are encrypted here.
    has_tls: bool,
}

/// Splits an authority into its host, in lowercase, and its port. `None` for what is no authority.
fn host_and_port(authority: &str) -> Option<(String, Option<u16>)> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']')?;
            host.parse::<std::net::Ipv6Addr>().ok()?;
            (host, port)
        }
        None => match authority.split_once(':') {
            Some((host, _)) => (host, authority.get(host.len()..)?),
            None => (authority, ""),
        },
    };
    let port = match port.strip_prefix(':') {
        Some(digits) => Some(digits.parse().ok()?),
        None if port.is_empty() => None,
        None => return None,
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-._:".contains(c);
    (!host.is_empty() && host.chars().all(is_name)).then(|| (host.to_ascii_lowercase(), port))
}

impl Names {
    /// Names of a server: `public_url` is the URL that people use where that is a proxy's.
    ///
    /// # Errors
    /// `ERR_SCHEMA` for what is no URL of a server, or no name.
    pub(super) fn new(
        public_url: Option<&str>,
        hosts: &[String],
        has_tls: bool,
    ) -> grainstore_rpc::Result<Self> {
        let schema = |message: String, hint: &str| {
            grainstore_rpc::Error::usage(grainstore_rpc::Code::Schema, message, hint)
        };
        let public = match public_url {
            None => None,
            Some(url) => {
                let wrong = || {
                    let message = format!("{url:?} is no URL of a server");
                    schema(message, "write https:// and a name, such as https://memory.example.org")
                };
                let (scheme, authority) = url.split_once("://").ok_or_else(wrong)?;
                let authority = authority.strip_suffix('/').unwrap_or(authority);
                let is_known = ["http", "https"].contains(&scheme);
                host_and_port(authority).filter(|_| is_known).ok_or_else(wrong)?;
                Some((scheme.to_owned(), authority.to_ascii_lowercase()))
            }
        };
        let mut names = Vec::new();
        for host in hosts {
            let name = host_and_port(host).filter(|(_, port)| port.is_none());
            let message = || format!("{host:?} is no name of a host");
            names.push(name.ok_or_else(|| schema(message(), "write the name alone"))?.0);
        }
        Ok(Self { public, hosts: names, has_tls })
    }

    /// Whether a proxy is in front: all connections come from it then.
    pub(super) fn has_proxy(&self) -> bool {
        self.public.is_some()
    }

    /// The scheme that browsers see.
    pub(super) fn is_encrypted(&self) -> bool {
        self.public.as_ref().map_or(self.has_tls, |(scheme, _)| scheme == "https")
    }

    /// Checks where a request was sent to and which page sent it.
    ///
    /// # Errors
    /// 400 without one `Host`, 421 for another name, 403 for another origin.
    pub(super) fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<()> {
        let mut hosts = headers.get_all(header::HOST).iter();
        let (host, more) = (hosts.next(), hosts.next());
        let host = host.filter(|_| more.is_none()).and_then(|host| host.to_str().ok());
        let host = host.ok_or_else(|| Failure::malformed("a request has one Host"))?;
        // A whole URL in the request line names another server, or this one.
        let asked = uri.authority().map_or(host, |authority| authority.as_str());
        if !asked.eq_ignore_ascii_case(host) {
            return Err(Failure::malformed("the request line and Host differ"));
        }
        let (name, _) = host_and_port(host)
            .ok_or_else(|| Failure::malformed("Host is a name or an address, and a port"))?;
        let is_own = name == "localhost"
            || name.parse::<IpAddr>().is_ok()
            || self.hosts.contains(&name)
            || self.public.as_ref().is_some_and(|(_, own)| own.eq_ignore_ascii_case(host));
        if !is_own {
            let message = "this server has another name";
            let hint = "start it with --host NAME, or with --public-url";
            return Err(Failure::new(StatusCode::MISDIRECTED_REQUEST, "ERR_ACCESS", message, hint));
        }
        self.check_origin(headers, host)
    }

    /// Checks which page sent a request, if a page did.
    fn check_origin(&self, headers: &HeaderMap, host: &str) -> Result<()> {
        let foreign = || {
            let message = "pages of other origins may not use this server";
            Failure::forbidden(message, "call it from a program, or use its console")
        };
        // A request under the public name came by its URL: pages of that name without encryption are others.
        let public = self.public.as_ref().filter(|(_, own)| own.eq_ignore_ascii_case(host));
        let own = match public {
            Some((scheme, authority)) => format!("{scheme}://{authority}"),
            None => format!("{}://{host}", if self.has_tls { "https" } else { "http" }),
        };
        for origin in headers.get_all(header::ORIGIN) {
            if !origin.to_str().is_ok_and(|origin| origin.eq_ignore_ascii_case(&own)) {
                return Err(foreign());
            }
        }
        let site = headers.get(HeaderName::from_static("sec-fetch-site"));
        // A link to the console may stand anywhere: that is a page being opened, and no call.
        let mode = headers.get(HeaderName::from_static("sec-fetch-mode"));
        let is_opened = mode.is_some_and(|mode| mode == "navigate");
        match site.is_some_and(|site| site == "cross-site" || site == "same-site") && !is_opened {
            true => Err(foreign()),
            false => Ok(()),
        }
    }
}

/// What a page of the console may load: its own files, and calls of its own server.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Headers of every answer.
const HEADERS: &[(&str, &str)] = &[
    ("content-security-policy", POLICY),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("x-frame-options", "DENY"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cache-control", "no-store"),
];

/// Adds the headers that every answer has, but for those it has its own of.
pub(super) fn add_headers(headers: &mut HeaderMap) {
    for (name, value) in HEADERS {
        headers.entry(*name).or_insert_with(|| HeaderValue::from_static(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
        all.iter()
            .map(|(name, value)| {
                (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
            })
            .collect()
    }

    fn status(names: &Names, all: &[(&'static str, &str)]) -> u16 {
        let checked = names.check(&Uri::from_static("/v1"), &headers(all));
        checked.map_or_else(|failure| failure.status().as_u16(), |()| 200)
    }

    #[test]
    fn a_name_that_is_not_its_own_is_refused() {
        let names = Names::new(None, &["memory.local".into()], false).unwrap();
        for own in [
            "localhost:7117",
            "127.0.0.1",
            "[::1]:7117",
            "192.168.0.9:1",
            "LOCALHOST",
            "memory.local:7117",
        ] {
            assert_eq!(status(&names, &[("host", own)]), 200, "{own}");
        }
        for other in [
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil.example:7117",
            "memory.local.evil",
        ] {
            assert_eq!(status(&names, &[("host", other)]), 421, "{other}");
        }
        for wrong in
            ["", "a b", "[::1", "localhost:port", "localhost:1:2", "local/host", "user@localhost"]
        {
            assert_eq!(status(&names, &[("host", wrong)]), 400, "{wrong:?}");
        }
        assert_eq!(status(&names, &[]), 400);
        assert_eq!(status(&names, &[("host", "localhost"), ("host", "evil.example")]), 400);
    }

    #[test]
    fn a_page_of_another_origin_is_refused() {
        let names = Names::new(None, &[], false).unwrap();
        let with = |origin: &str| status(&names, &[("host", "localhost:7117"), ("origin", origin)]);
        assert_eq!(with("http://localhost:7117"), 200);
        for other in [
            "http://localhost",
            "https://localhost:7117",
            "null",
            "http://evil.example",
            "http://localhost:7118",
        ] {
            assert_eq!(with(other), 403, "{other}");
        }
        let cross = [
            ("host", "localhost:7117"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-mode", "no-cors"),
        ];
        assert_eq!(status(&names, &cross), 403);
        let link = [
            ("host", "localhost:7117"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-mode", "navigate"),
        ];
        assert_eq!(status(&names, &link), 200);
    }

    #[test]
    fn behind_a_proxy_the_public_url_is_its_own() {
        let names = Names::new(Some("https://memory.example.org/"), &[], false).unwrap();
        assert!(names.is_encrypted());
        let host = ("host", "memory.example.org");
        assert_eq!(status(&names, &[host, ("origin", "https://memory.example.org")]), 200);
        assert_eq!(status(&names, &[host, ("origin", "https://memory.example.org.evil")]), 403);
        assert_eq!(status(&names, &[host, ("origin", "http://memory.example.org")]), 403);
        // Beside the proxy it is what it is.
        let direct = ("host", "127.0.0.1:7117");
        assert_eq!(status(&names, &[direct, ("origin", "http://127.0.0.1:7117")]), 200);
        assert_eq!(status(&names, &[direct, ("origin", "https://memory.example.org")]), 403);
        for wrong in ["memory.example.org", "ftp://a", "https://", "https://a/b", "https://a b"] {
            assert!(Names::new(Some(wrong), &[], false).is_err(), "{wrong}");
        }
        assert!(Names::new(None, &["a:1".into()], false).is_err());
    }
}
