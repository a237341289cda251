//! JSON lines of any kind, by a mapping that says which field is what: dumps of graphs, of tables, of tools without a
//! format of their own.

mod mapping;

use serde_json::Value;

use crate::error::{Error, Result};
use crate::migrate::format::Ask;
use crate::migrate::record::{Body, Chain, Ending, KNOWS, Record, Sink, Who, relation, texts};
use crate::migrate::rows::{self, MAX_ROW_BYTES, Row};
use crate::migrate::time::Dated;
use mapping::{Field, Kind, Mapping, Rule};

pub(crate) fn read(ask: &Ask<'_>, sink: &mut dyn Sink) -> Result<()> {
    let mapping = mapping(ask)?;
    for file in rows::files(ask.source, sink)? {
        let lists: Vec<&str> = mapping.lists.iter().map(String::as_str).collect();
        rows::read(ask.source, file, &lists, sink, &mut |row, sink| match mapping
            .rules
            .iter()
            .find(|rule| rule.fits(&row))
        {
            Some(rule) => Reading { rule, row: &row, ask }.read(sink),
            None => sink.skip(&row.place, "no rule of the mapping is for it"),
        })?;
    }
    Ok(())
}

fn mapping(ask: &Ask<'_>) -> Result<Mapping> {
    let Some(beside) = ask.beside else {
        return Err(Error::schema("JSON lines need a mapping: which field is what")
            .with_hint("write one as docs/migrate.md shows, and give it beside the file"));
    };
    let [file] = beside.files() else {
        return Err(Error::schema("a mapping is one file"));
    };
    let text = beside.text(file, MAX_ROW_BYTES as u64)?;
    Mapping::parse(&text).map_err(|error| error.in_entry(&file.name))
}

/// A row that is read by a rule.
struct Reading<'r> {
    rule: &'r Rule,
    row: &'r Row,
    ask: &'r Ask<'r>,
}

impl<'r> Reading<'r> {
    fn read(&self, sink: &mut dyn Sink) -> Result<()> {
        let Rule { kind, fields, unit, .. } = self.rule;
        let place = &self.row.place;
        let Some(id) = self.text(&fields.id) else {
            return sink.misshapen(place, "it has no id where the mapping says");
        };
        let body = match self.body() {
            Ok(body) => body,
            Err(why) => return sink.misshapen(place, why),
        };
        let date = |field: &'r Option<Field>| Dated::of(self.value(field), *unit);
        let times = [&fields.updated_at, &fields.valid_from, &fields.valid_to].map(date);
        let expired = date(&fields.expired_at);
        for time in times.iter().chain([&expired]) {
            if let Dated::Unreadable(_) = time {
                return sink.misshapen(place, time.to_string());
            }
        }
        let [updated, valid_from, valid_to] = times.map(|time| time.time());
        let record = Record {
            updated,
            valid_from,
            valid_to,
            who: Who {
                user: self.text(&fields.user),
                agent: self.text(&fields.agent),
                session: self.text(&fields.session),
                run: self.text(&fields.run),
                role: self.text(&fields.role),
            },
            namespace: self.text(&fields.namespace),
            tags: self.tags(),
            rest: self.rule.rest(&self.row.members),
            ..Record::new(place, kind.name(), body, date(&fields.created_at))
        };
        let ending = expired.time().map(Ending::Expired);
        let versions = vec![(String::new(), record)];
        // Ids of one kind say nothing of those of another.
        let id_of = |id: &str| format!("{} {id}", kind.name());
        let follows = self.text(&fields.follows).map(|id| id_of(&id));
        sink.chain(Chain { id: id_of(&id), versions, follows, ending, is_partial: false })
    }

    fn body(&self) -> Result<Body, String> {
        let Rule { kind, fields, .. } = self.rule;
        let missing = |what: &str| format!("it has no {what} where the mapping says");
        let need =
            |field: &'r Option<Field>, what: &str| self.text(field).ok_or_else(|| missing(what));
        match kind {
            Kind::Message => Ok(Body::Message {
                text: need(&fields.text, "text")?,
                parent: self.text(&fields.parent).map(|id| format!("{} {id}", kind.name())),
                model: self.text(&fields.model),
            }),
            Kind::Procedure => {
                let steps = match self.value(&fields.steps) {
                    Some(Value::Array(_)) => texts(self.value(&fields.steps)),
                    _ => self
                        .text(&fields.steps)
                        .or_else(|| self.text(&fields.text))
                        .into_iter()
                        .collect(),
                };
                match steps.is_empty() {
                    true => Err(missing("steps")),
                    false => {
                        Ok(Body::Procedure { trigger: need(&fields.trigger, "trigger")?, steps })
                    }
                }
            }
            Kind::Memory | Kind::Fact => {
                let user = self.ask.user.map(str::to_owned).or_else(|| self.text(&fields.user));
                let subject =
                    self.text(&fields.subject).or(user).ok_or_else(|| missing("subject"))?;
                let object = match self.value(&fields.object).or_else(|| self.value(&fields.text)) {
                    None | Some(Value::Null) => return Err(missing("text")),
                    Some(Value::String(said)) if said.trim().is_empty() => {
                        return Err(missing("text"));
                    }
                    Some(object) => object.clone(),
                };
                Ok(Body::Fact {
                    subject,
                    relation: self.relation(),
                    object,
                    confidence: self.confidence()?,
                })
            }
        }
    }

    /// A relation that the mapping names is meant as it is; one that the row names is kept from those of the standard.
    fn relation(&self) -> String {
        match (&self.rule.fields.relation, self.text(&self.rule.fields.relation)) {
            (Some(Field::Constant { .. }), Some(name)) => name,
            (_, Some(name)) => relation(&name),
            (_, None) => KNOWS.to_owned(),
        }
    }

    fn confidence(&self) -> Result<Option<f64>, String> {
        let value = self.value(&self.rule.fields.confidence).filter(|value| !value.is_null());
        let number = |value: &Value| match value {
            Value::String(text) => text.trim().parse().ok(),
            value => value.as_f64(),
        };
        match value.map(number) {
            None => Ok(None),
            Some(Some(confidence)) if (0.0..=1.0).contains(&confidence) => Ok(Some(confidence)),
            Some(_) => Err("its confidence is no number from 0 to 1".to_owned()),
        }
    }

    fn tags(&self) -> Vec<String> {
        match self.value(&self.rule.fields.tags) {
            Some(Value::String(tags)) => {
                let tags = tags.split(',').map(str::trim).filter(|tag| !tag.is_empty());
                tags.map(str::to_owned).collect()
            }
            tags => texts(tags),
        }
    }

    fn value(&self, field: &'r Option<Field>) -> Option<&'r Value> {
        field.as_ref()?.value(&self.row.members)
    }

    /// The text of a field. A number is written out.
    fn text(&self, field: &'r Option<Field>) -> Option<String> {
        match self.value(field)? {
            Value::String(text) if !text.trim().is_empty() => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        }
    }
}
