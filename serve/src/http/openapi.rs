//! The OpenAPI document (3.1), made of the table of routes.

use std::sync::OnceLock;

use serde_json::{Value, json};
use utoipa::openapi::path::{
    HttpMethod, OperationBuilder, ParameterBuilder, ParameterIn, PathItemBuilder,
};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{
    AdditionalProperties, AnyOfBuilder, ArrayBuilder, ComponentsBuilder, ObjectBuilder, Schema,
    SchemaType, Type,
};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    ContentBuilder, HeaderBuilder, InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder,
    PathsBuilder, Ref, RefOr, Required, ResponseBuilder, ServerBuilder,
};

use super::call::{AT_LEAST, POSITION};
use super::routes::{CAL_PATH, Kind, Param, Place, ROUTES, Reach, Route, Verb};

/// The name of the way to sign in.
const BEARER: &str = "bearer";
/// The name of the schema of errors.
const PROBLEM: &str = "Problem";
/// What a place of the journal is as text.
const PLACE: &str = "^([0-9]{1,15}:[0-9]{1,15}|latest)$";
/// Statuses of errors that any route may answer.
const ERRORS: &[(u16, &str)] = &[
    (400, "Malformed: the message names the parameter"),
    (401, "No token, or one that does not hold"),
    (403, "Not for this token, or refused by a policy or a rule"),
    (404, "No such grain, or none that the token sees"),
    (408, "The body did not come in time"),
    (409, "In conflict with what is stored"),
    (410, "Erased or withdrawn, or a cursor of before"),
    (413, "Too large"),
    (415, "Another type of body than the route takes"),
    (421, "Another name than the server's own"),
    (422, "Understood, and refused: a grain or a statement with a mistake"),
    (426, "A WebSocket, and not asked for as one"),
    (429, "Too often"),
    (500, "The server failed; its log says why"),
    (503, "Busy, switched off, or cancelled after the time a request may take"),
];

/// Routes that are no call of a method: verb, path, tag, what it does, parameters, type of its answer.
struct Other {
    verb: HttpMethod,
    path: &'static str,
    tag: &'static str,
    about: &'static str,
    params: &'static [Param],
    media: &'static str,
    is_open: bool,
    success: u16,
}

const SERVER: &str = "Server";
const STREAMS: &str = "Streams";

const fn other(
    path: &'static str,
    tag: &'static str,
    media: &'static str,
    about: &'static str,
) -> Other {
    Other {
        verb: HttpMethod::Get,
        path,
        tag,
        about,
        params: &[],
        media,
        is_open: false,
        success: 200,
    }
}

const STREAM_ID: &[Param] = &[Param {
    name: "id",
    member: "id",
    place: Place::Path,
    kind: Kind::Text,
    is_required: true,
    about: "the id of the stream, as Content-Location names it, or of its assembly",
}];

const AFTER: &[Param] = &[Param {
    name: "after",
    member: "after",
    place: Place::Query,
    kind: Kind::Count,
    is_required: false,
    about: "the sequence of the last entry that was seen",
}];

const BEFORE: &[Param] = &[Param {
    name: "before",
    member: "before",
    place: Place::Body,
    kind: Kind::Text,
    is_required: true,
    about: "the statement up to the cursor",
}];

fn others() -> [Other; 11] {
    [
        other(
            "/v1",
            SERVER,
            "application/json",
            "Names the program, its conformance, and what the token may do.",
        ),
        Other {
            is_open: true,
            ..other("/v1/openapi.json", SERVER, "application/json", "This document.")
        },
        Other {
            is_open: true,
            ..other("/health", SERVER, "text/plain", "Whether the process lives.")
        },
        Other {
            is_open: true,
            ..other("/ready", SERVER, "text/plain", "Whether requests are answered.")
        },
        other(
            "/metrics",
            SERVER,
            "application/openmetrics-text",
            "Figures for Prometheus; for the operator.",
        ),
        other(
            "/v1/metrics.json",
            SERVER,
            "application/json",
            "Figures of the last ten minutes; for the operator.",
        ),
        Other {
            params: AFTER,
            ..other(
                "/v1/changes",
                STREAMS,
                "text/event-stream",
                "What becomes of grains, as it happens.",
            )
        },
        Other {
            params: STREAM_ID,
            ..other(
                "/v1/cal/streams/{id}",
                STREAMS,
                "text/event-stream",
                "Takes a stream of CAL up again.",
            )
        },
        Other {
            verb: HttpMethod::Delete,
            params: STREAM_ID,
            success: 204,
            ..other("/v1/cal/streams/{id}", STREAMS, "", "Cancels a stream of CAL.")
        },
        Other {
            success: 101,
            ..other("/v1/cal/socket", STREAMS, "", "A WebSocket for streams of CAL.")
        },
        Other {
            verb: HttpMethod::Post,
            params: BEFORE,
            ..other(
                "/v1/cal/complete",
                "Asking",
                "application/json",
                "What may stand at the end of a statement.",
            )
        },
    ]
}

impl Kind {
    fn schema(self) -> Schema {
        let of = |kind: Type| ObjectBuilder::new().schema_type(kind);
        match self {
            Self::Text => of(Type::String).into(),
            Self::Address => of(Type::String).pattern(Some("^[0-9a-f]{64}$")).into(),
            Self::Count => of(Type::Integer).minimum(Some(0)).into(),
            Self::Time => of(Type::Integer).into(),
            Self::Flag => of(Type::Boolean).into(),
            Self::Word(words) => of(Type::String).enum_values(Some(words.iter().copied())).into(),
            Self::Object => of(Type::Object).into(),
            Self::Texts => ArrayBuilder::new().items(of(Type::String)).into(),
            Self::Objects => ArrayBuilder::new().items(any()).into(),
            Self::Statement => {
                AnyOfBuilder::new().item(of(Type::String)).item(of(Type::Object)).into()
            }
            Self::Bytes => of(Type::String).content_encoding("base64").into(),
        }
    }
}

fn any() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(SchemaType::AnyValue)
}

fn problem() -> RefOr<Schema> {
    let text = || ObjectBuilder::new().schema_type(Type::String);
    ObjectBuilder::new()
        .schema_type(Type::Object)
        .description(Some("RFC 9457; errors of CAL have the members of its error object as well"))
        .property("type", text())
        .property("title", text())
        .property("status", ObjectBuilder::new().schema_type(Type::Integer))
        .property("code", text().description(Some("docs/errors.md lists the codes")))
        .property("detail", text())
        .property("hint", text())
        .required("status")
        .required("code")
        .required("detail")
        .build()
        .into()
}

/// The object of the parameters in a body; `None` if there are none.
fn body_of(params: &[Param]) -> Option<(Schema, bool)> {
    let params = || params.iter().filter(|param| param.place == Place::Body);
    params().next()?;
    let object = ObjectBuilder::new()
        .schema_type(Type::Object)
        .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(false)));
    let object = params().fold(object, |object, param| {
        let object = object.property(param.name, described(param.kind.schema(), param.about));
        if param.is_required { object.required(param.name) } else { object }
    });
    Some((object.into(), params().any(|param| param.is_required)))
}

/// A schema with a description.
fn described(schema: Schema, about: &str) -> Schema {
    match schema {
        Schema::Object(mut object) => {
            object.description = Some(about.to_owned());
            Schema::Object(object)
        }
        Schema::Array(mut array) => {
            array.description = Some(about.to_owned());
            Schema::Array(array)
        }
        Schema::AnyOf(mut any) => {
            any.description = Some(about.to_owned());
            Schema::AnyOf(any)
        }
        other => other,
    }
}

/// An operation with its parameters and errors.
fn operation(tag: &str, about: &str, params: &[Param], is_open: bool) -> OperationBuilder {
    let mut operation = OperationBuilder::new().tag(tag).summary(Some(about));
    for param in params.iter().filter(|param| param.place != Place::Body) {
        let place = match param.place {
            Place::Path => ParameterIn::Path,
            Place::Query | Place::Body => ParameterIn::Query,
        };
        let required = if param.is_required { Required::True } else { Required::False };
        let parameter = ParameterBuilder::new()
            .name(param.name)
            .parameter_in(place)
            .required(required)
            .description(Some(param.about))
            .schema(Some(param.kind.schema()));
        operation = operation.parameter(parameter);
    }
    for (status, about) in
        ERRORS.iter().filter(|(status, _)| !is_open || ![401, 403].contains(status))
    {
        let content = ContentBuilder::new().schema(Some(Ref::from_schema_name(PROBLEM))).build();
        let response =
            ResponseBuilder::new().description(*about).content("application/problem+json", content);
        operation = operation.response(status.to_string(), response.build());
    }
    let requirement = match is_open {
        true => SecurityRequirement::default(),
        false => SecurityRequirement::new(BEARER, Vec::<String>::new()),
    };
    operation.security(requirement)
}

fn with_body(operation: OperationBuilder, params: &[Param], media: &[&str]) -> OperationBuilder {
    let Some((schema, is_required)) = body_of(params) else { return operation };
    let required = if is_required { Required::True } else { Required::False };
    let mut body = RequestBodyBuilder::new().required(Some(required));
    for media in media {
        let schema = match *media {
            "text/cal" => ObjectBuilder::new().schema_type(Type::String).into(),
            "application/json+cal" => ObjectBuilder::new().schema_type(Type::Object).into(),
            _ => schema.clone(),
        };
        body = body.content(*media, ContentBuilder::new().schema(Some(schema)).build());
    }
    operation.request_body(Some(body.build()))
}

fn of_route(route: &Route) -> OperationBuilder {
    let about = match route.reach {
        Reach::Read => route.about.to_owned(),
        Reach::Write => format!("{} For tokens of tier 1.", route.about),
        Reach::Statement => format!("{} What writes is for tokens of tier 1.", route.about),
        Reach::Operate => format!("{} For tokens with the operator's rights.", route.about),
    };
    let id = format!("{}_{}", route.verb.method().as_str().to_lowercase(), name_of(route.path));
    let operation = operation(route.tag, &about, route.params, false).operation_id(Some(id));
    let described = format!("The method `{}` of docs/rpc.md.", route.method);
    let place = ObjectBuilder::new().schema_type(Type::String).pattern(Some(PLACE));
    let at_least = ParameterBuilder::new()
        .name(AT_LEAST.as_str())
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some("the position that the answer is to be at or after, or latest"))
        .schema(Some(place));
    let operation = operation.description(Some(described)).parameter(at_least);
    let takes_cal = route.params.iter().any(|param| param.kind == Kind::Statement);
    let media: &[&str] = match takes_cal {
        true => &["application/json", "text/cal", "application/json+cal"],
        false => &["application/json"],
    };
    let operation = match route.verb {
        Verb::Post => with_body(operation, route.params, media),
        Verb::Get | Verb::Delete => operation,
    };
    let answer = ObjectBuilder::new().schema_type(Type::Object);
    let answer = route
        .answers
        .iter()
        .fold(answer, |answer, name| answer.property(*name, Schema::from(any())).required(*name));
    let content = ContentBuilder::new().schema(Some(Schema::from(answer))).build();
    let text = ObjectBuilder::new().schema_type(Type::String);
    let position = HeaderBuilder::new()
        .schema(Some(text))
        .description(Some("where the store was in its journal, if it has one"));
    let position = position.build();
    let mut response = ResponseBuilder::new()
        .description("Done")
        .header(POSITION.as_str(), position.clone())
        .content("application/json", content.clone());
    if route.path == CAL_PATH {
        let events = ContentBuilder::new().build();
        response = response
            .content("text/event-stream", events.clone())
            .content("application/x-ndjson", events);
    }
    let operation = operation.response("200", response.build());
    match route.creates {
        true => {
            let made = ResponseBuilder::new().description("Stored; Location names it");
            let made = made.header(POSITION.as_str(), position);
            operation.response("201", made.content("application/json", content).build())
        }
        false => operation,
    }
}

/// A path as a name.
fn name_of(path: &str) -> String {
    let parts = path.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("_")
}

fn of_other(other: &Other) -> OperationBuilder {
    let verb = match other.verb {
        HttpMethod::Post => "post",
        HttpMethod::Delete => "delete",
        _ => "get",
    };
    let operation = operation(other.tag, other.about, other.params, other.is_open);
    let operation = operation.operation_id(Some(format!("{verb}_{}", name_of(other.path))));
    let operation = with_body(operation, other.params, &["application/json"]);
    let mut response = ResponseBuilder::new().description("Done");
    if !other.media.is_empty() {
        response = response.content(other.media, ContentBuilder::new().build());
    }
    operation.response(other.success.to_string(), response.build())
}

/// The document.
pub(super) fn document() -> OpenApi {
    let mut paths = PathsBuilder::new();
    for route in ROUTES {
        let verb = match route.verb {
            Verb::Get => HttpMethod::Get,
            Verb::Post => HttpMethod::Post,
            Verb::Delete => HttpMethod::Delete,
        };
        paths =
            paths.path(route.path, PathItemBuilder::new().operation(verb, of_route(route)).build());
    }
    for other in others() {
        let item = PathItemBuilder::new().operation(other.verb.clone(), of_other(&other)).build();
        paths = paths.path(other.path, item);
    }
    let info = InfoBuilder::new()
        .title("Grainstore")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(
            "A store for AI-agent memory over HTTP. Parameters and answers are those of the methods of docs/rpc.md; \
             docs/http.md says how it is served.",
        ))
        .license(Some(LicenseBuilder::new().name("MIT OR Apache-2.0").build()));
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("A token that `grain tokens create` made"));
    let components = ComponentsBuilder::new()
        .security_scheme(BEARER, SecurityScheme::Http(bearer.build()))
        .schema(PROBLEM, problem());
    OpenApiBuilder::new()
        .info(info)
        .servers(Some([ServerBuilder::new().url("/").build()]))
        .paths(paths)
        .components(Some(components.build()))
        .build()
}

/// The document as the server sends it, which is made once.
pub(super) fn text() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| json().to_string())
}

/// The document as the server sends it.
pub(super) fn json() -> Value {
    serde_json::to_value(document()).unwrap_or_else(|_| json!({}))
}
