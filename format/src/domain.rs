//! Field names of the domain profiles (OMS appendix A), and the short keys of the integration profile
//! (appendix C).

/// The prefixes of domain field names, which [`is_domain_field`] looks for: healthcare, legal, finance,
/// robotics, science, consumer, integration.
pub const DOMAIN_PREFIXES: [&str; 7] = ["hc:", "legal:", "fin:", "rob:", "sci:", "con:", "int:"];

/// The short keys of `int:` fields inside `context`, with the full names they stand for.
#[rustfmt::skip]
const INT_KEYS: [(&str, &str); 25] = [
    ("int:base_url", "ib"), ("int:http_method", "ihm"), ("int:http_path", "ihp"),
    ("int:path_params", "ipp"), ("int:query_params", "iqp"), ("int:body_params", "ibp"),
    ("int:response_mapping", "irm"), ("int:auth_type", "iat"), ("int:auth_scopes", "ias"),
    ("int:read_only", "iro"), ("int:connector", "ic"), ("int:docs_url", "idu"),
    ("int:rate_limit", "irl"), ("int:category", "icat"), ("int:sunset_date", "isd"),
    ("int:content_type", "ict"), ("int:poll_interval_secs", "ipis"), ("int:cursor_field", "icf"),
    ("int:cursor_type", "icft"), ("int:webhook_path", "iwp"), ("int:webhook_secret_header", "iwsh"),
    ("int:cron_expression", "icron"), ("int:timezone", "itz"), ("int:config_schema", "icfg"),
    ("int:event_schema", "ievt"),
];

/// Returns `true` if the name is that of a domain field.
///
/// ```
/// use grainstore_format::is_domain_field;
///
/// assert!(is_domain_field("hc:dosage"));
/// assert!(!is_domain_field("subject"));
/// ```
#[must_use]
pub fn is_domain_field(name: &str) -> bool {
    DOMAIN_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Returns the short key of an `int:` field.
///
/// ```
/// use grainstore_format::{int_key, int_name};
///
/// assert_eq!(int_key("int:base_url"), Some("ib"));
/// assert_eq!(int_name("ib"), Some("int:base_url"));
/// ```
#[must_use]
pub fn int_key(name: &str) -> Option<&'static str> {
    INT_KEYS.iter().find(|(known, _)| *known == name).map(|(_, key)| *key)
}

/// Returns the `int:` field of a short key inside `context`: the reverse of [`int_key`].
#[must_use]
pub fn int_name(key: &str) -> Option<&'static str> {
    INT_KEYS.iter().find(|(_, known)| *known == key).map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn int_fields_and_their_keys_are_one_to_one() {
        for (name, key) in INT_KEYS {
            assert_eq!((int_key(name), int_name(key)), (Some(key), Some(name)));
            assert!(is_domain_field(name) && !is_domain_field(key), "{name}");
        }
    }
}
