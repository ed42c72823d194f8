//! The one tool that is offered: how it is listed, and what it takes.

use super::session::Version;
use crate::definition::NAME;
use crate::error::Result;
use crate::json::{self, quote, ObjectWriter, Value};
use crate::suggest::did_you_mean;
use crate::Engine;

/// What `structuredContent` of a call is: the result of a run. It may have more members than these.
const OUTPUT_SCHEMA: &str = include_str!("output_schema.json");

/// Scripts may do anything that their user may.
const ANNOTATIONS: &str =
    r#"{"readOnlyHint":false,"destructiveHint":true,"idempotentHint":false,"openWorldHint":true}"#;

/// The argument that is not an option of the run.
const CODE: &str = "code";

pub(super) struct Offer {
    definition: Value,
    output_schema: String,
    /// The arguments that the definition has.
    known: Vec<String>,
}

impl Offer {
    pub(super) fn new(engine: &Engine) -> Result<Offer> {
        let invalid = |e: String| crate::Error::new(crate::Code::Io, e);
        let definition = json::parse(&engine.definition("mcp")?).map_err(invalid)?;
        // A message has no line breaks.
        let output_schema = json::parse(OUTPUT_SCHEMA).map_err(invalid)?.to_string();
        let properties = definition
            .get("inputSchema")
            .and_then(|schema| schema.get("properties"))
            .and_then(Value::as_object);
        let known = properties.unwrap_or_default().iter();
        let known = known.map(|(name, _)| name.clone()).collect();
        Ok(Offer {
            definition,
            output_schema,
            known,
        })
    }

    /// The definition, with what `version` knows of.
    pub(super) fn listing(&self, version: Version) -> String {
        let mut tool = ObjectWriter::default();
        for (key, value) in self.definition.as_object().unwrap_or_default() {
            if key != "title" || version >= Version::June2025 {
                tool.raw(key, value);
            }
        }
        if version >= Version::June2025 {
            tool.raw("outputSchema", &self.output_schema);
        }
        if version >= Version::March2025 {
            tool.raw("annotations", ANNOTATIONS);
        }
        tool.finish()
    }

    /// What is wrong with a call of the tool `name`.
    pub(super) fn check_name(&self, name: &str) -> std::result::Result<(), String> {
        match name == NAME {
            true => Ok(()),
            false => Err(format!(
                "there is no tool {}; there is {NAME}, whose scripts can call what its description lists",
                quote(name)
            )),
        }
    }

    /// The script, and the options of its run.
    pub(super) fn arguments(
        &self,
        given: Option<&Value>,
    ) -> std::result::Result<(String, String), String> {
        let empty = Value::Object(Vec::new());
        let given = given.unwrap_or(&empty);
        let members = given
            .as_object()
            .ok_or("arguments: expected an object with \"code\"")?;
        let mut options = ObjectWriter::default();
        for (name, value) in members {
            if !self.known.contains(name) {
                let hint = did_you_mean(name, self.known.iter().map(String::as_str));
                return Err(format!("arguments: there is no {}{hint}", quote(name)));
            }
            if name != CODE {
                options.raw(name, value);
            }
        }
        let code = given
            .get(CODE)
            .and_then(Value::as_str)
            .ok_or("arguments.code: expected a string, the Python script")?;
        Ok((code.to_string(), options.finish()))
    }
}
