//! A request as the line that is sent to the owner of the store.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::error::{Code, Error, Result};
use crate::json::Pairs;

/// Most bytes of a request.
const MAX_BYTES: usize = crate::lines::MAX_REQUEST_BYTES;

/// Methods that name files, which are meant from the current directory of who asks.
const OF_FILES: &[&str] = &[
    "export",
    "import",
    "backup",
    "rotate_keys",
    "ages_export",
    "ages_verify",
    "alf_validate",
    "alf_import",
    "alf_export",
    "alf_delta",
    "alf_apply",
    "alf_purge",
    "saga_validate",
    "saga_import",
    "saga_export",
    "migrate",
];
/// Their members that are names of files.
const FILES: &[&str] = &["path", "to", "audit_file", "beside", "key_file"];

/// A request: the JSON of its id, its method, and its parameters as they were written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call<'r> {
    pub(crate) id: &'r str,
    pub(crate) method: &'r str,
    pub(crate) params: Option<&'r RawValue>,
}

impl Call<'_> {
    /// The line for another process, without its end.
    ///
    /// # Errors
    /// `ERR_TOO_LARGE`; `ERR_SCHEMA` for the name of a file that cannot be told to another process.
    pub(super) fn line(&self) -> Result<Vec<u8>> {
        let method = serde_json::to_string(self.method)?;
        let mut line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":{method}", self.id);
        if let Some(params) = self.params {
            line.push_str(",\"params\":");
            match self.with_whole_names(params)? {
                Some(params) => line.push_str(&params),
                // JSON that was written over several lines is one.
                None => line.push_str(&one_line(params.get())?),
            }
        }
        line.push('}');
        if line.len() > MAX_BYTES {
            let message = format!("a request has at most {MAX_BYTES} bytes");
            return Err(Error::new(Code::TooLarge, message, "split the batch"));
        }
        Ok(line.into_bytes())
    }

    /// The parameters with names of files that do not depend on the current directory, if they name files.
    fn with_whole_names(&self, params: &RawValue) -> Result<Option<String>> {
        if !OF_FILES.contains(&self.method) {
            return Ok(None);
        }
        // The owner refuses what is no object, what are no names, and what is there twice.
        let members = serde_json::from_str::<Pairs<Box<RawValue>>>(params.get());
        let Ok(Pairs(mut members)) = members else { return Ok(None) };
        for (name, member) in &mut members {
            if !FILES.contains(&name.as_str()) {
                continue;
            }
            let Ok(files) = serde_json::from_str::<Files>(member.get()) else { continue };
            let whole = files.whole().ok_or_else(|| {
                let message = format!("{name}: the current directory has no name in UTF-8");
                Error::new(Code::Schema, message, "name the file from the root")
            })?;
            *member = serde_json::value::to_raw_value(&whole)?;
        }
        one_line(&serde_json::to_string(&Pairs(members))?).map(Some)
    }
}

/// The name of a file, or those of several.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Files {
    One(String),
    Several(Vec<String>),
}

impl Files {
    /// The names that do not depend on the current directory; one that ends in a slash still does.
    fn whole(self) -> Option<Self> {
        let whole = |file: String| {
            let mut whole = std::path::absolute(Path::new(&file)).ok()?.to_str()?.to_owned();
            if file.ends_with('/') && !whole.ends_with('/') {
                whole.push('/');
            }
            Some(whole)
        };
        Some(match self {
            Self::One(file) => Self::One(whole(file)?),
            Self::Several(files) => {
                Self::Several(files.into_iter().map(whole).collect::<Option<_>>()?)
            }
        })
    }
}

/// JSON without line ends, which only lie between its tokens.
fn one_line(json: &str) -> Result<String> {
    Ok(if json.contains(['\n', '\r']) { json.replace(['\n', '\r'], " ") } else { json.to_owned() })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn sent(method: &str, params: &str) -> Value {
        let params: Box<RawValue> = serde_json::from_str(params).unwrap();
        let line = Call { id: "7", method, params: Some(&params) }.line().unwrap();
        assert!(!line.contains(&b'\n'));
        serde_json::from_slice(&line).unwrap()
    }

    #[test]
    fn names_of_files_are_meant_from_here() {
        let here = std::env::current_dir().unwrap();
        let told = sent("alf_export", r#"{"path": "agent.alf", "native": true}"#);
        assert_eq!(told["params"]["path"], json!(here.join("agent.alf")));
        assert_eq!(told["params"]["native"], true);
        let several = sent("import", r#"{"path": ["a.mg", "b/"]}"#);
        assert_eq!(several["params"]["path"][0], json!(here.join("a.mg")));
        assert!(several["params"]["path"][1].as_str().unwrap().ends_with("/b/"));
        assert_eq!(
            sent("rotate_keys", r#"{"key_file": "k"}"#)["params"]["key_file"],
            json!(here.join("k"))
        );
        assert_eq!(sent("paths", r#"{"to": "x"}"#)["params"]["to"], "x");
        let document = sent("saga_validate", r#"{"path": "profile.json"}"#);
        assert_eq!(document["params"]["path"], json!(here.join("profile.json")));
    }

    #[test]
    fn a_member_that_comes_twice_is_refused_by_the_owner() {
        let params: Box<RawValue> =
            serde_json::from_str(r#"{"path": "a", "native": true, "path": "b"}"#).unwrap();
        let line = Call { id: "7", method: "alf_export", params: Some(&params) }.line().unwrap();
        let line = String::from_utf8(line).unwrap();
        assert_eq!(line.matches("\"path\":").count(), 2, "{line}");
    }

    #[test]
    fn a_request_over_several_lines_is_one() {
        let told = sent("put", "{\n\"grain\":\r\n {\"a\": \"b\\n\"}}");
        assert_eq!(
            told,
            json!({ "jsonrpc": "2.0", "id": 7, "method": "put",
            "params": { "grain": { "a": "b\n" } } })
        );
        let long = format!("{{\"a\": \"{}\"}}", "x".repeat(MAX_BYTES));
        let params: Box<RawValue> = serde_json::from_str(&long).unwrap();
        let refused = Call { id: "1", method: "put", params: Some(&params) }.line().unwrap_err();
        assert!(refused.has_code(Code::TooLarge), "{refused}");
    }
}
