use super::*;
use crate::json;

fn function(input: &str, output: Option<&str>) -> Function {
    let input = json::parse(input).unwrap_or_else(|e| panic!("{input}: {e}"));
    let output = output.map(|text| json::parse(text).unwrap());
    Function::new(&Section::empty("tools[0]"), "tool", &input, output.as_ref()).unwrap()
}

fn signature(input: &str) -> String {
    function(input, None).signature()
}

#[test]
fn the_order_of_the_schema_is_kept_where_it_can_be() {
    for (schema, expected) in [
        (
            r#"{"properties":{"z":{"type":"string"},"a":{"type":"integer"}},"required":["z","a"]}"#,
            "tool(z: str, a: int)",
        ),
        (
            r#"{"properties":{"z":{"type":"string"},"a":{"type":"integer"}},"required":["z"]}"#,
            "tool(z: str, a: int = None)",
        ),
        // An optional one in front of a required one.
        (
            r#"{"properties":{"a":{"type":"integer"},"z":{"type":"string"}},"required":["z"]}"#,
            "tool(z: str, *, a: int = None)",
        ),
        // Two orders that contradict each other.
        (
            r#"{"properties":{"content":{"type":"string"},"path":{"type":"string"}},"required":["path","content"]}"#,
            "tool(*, content: str, path: str)",
        ),
        // A name that is only required.
        (
            r#"{"properties":{"a":{"type":"integer"}},"required":["a","b"]}"#,
            "tool(a: int, b: Any)",
        ),
        (
            r#"{"properties":{"a":{"type":"integer"}},"required":["b"]}"#,
            "tool(b: Any, *, a: int = None)",
        ),
        (r#"{"properties":{}}"#, "tool()"),
        // Names in Python.
        (
            r#"{"properties":{"from":{"type":"string"},"max-rows":{"type":"integer"},"2fa":{"type":"boolean"}},"required":["from"]}"#,
            "tool(from_: str, max_rows: int = None, _2fa: bool = None)",
        ),
        // A required argument with a default is still required.
        (
            r#"{"properties":{"a":{"type":"integer","default":3}},"required":["a"]}"#,
            "tool(a: int)",
        ),
    ] {
        assert_eq!(signature(schema), expected, "{schema}");
    }
}

#[test]
fn further_arguments_are_open_where_the_schema_says_so() {
    for (schema, expected) in [
        ("{}", "tool(**more)"),
        (r#"{"type":"object"}"#, "tool(**more)"),
        (r#"{"type":["object","null"]}"#, "tool(**more)"),
        (r#"{"additionalProperties":false}"#, "tool()"),
        (
            r#"{"properties":{},"additionalProperties":{"type":"string"}}"#,
            "tool(**more)",
        ),
        (
            r#"{"properties":{"a":{}},"patternProperties":{"^x":{}}}"#,
            "tool(a: Any = None, **more)",
        ),
        (r#"{"properties":{"a":{}}}"#, "tool(a: Any = None)"),
        (
            r#"{"allOf":[{"properties":{"a":{"type":"string"}},"required":["a"]}]}"#,
            "tool(a: str)",
        ),
        (
            r##"{"$ref":"#/$defs/A","$defs":{"A":{"type":"object","properties":{"a":{"type":"string"}}}}}"##,
            "tool(a: str = None)",
        ),
    ] {
        assert_eq!(signature(schema), expected, "{schema}");
    }
}

#[test]
fn defaults_are_shown_as_python() {
    for (default, expected) in [
        ("5", "5"),
        ("-1.50", "-1.50"),
        ("true", "True"),
        ("null", "None"),
        (r#""a\"b\n""#, r#""a\"b\n""#),
        (r#"[1,{"k":null}]"#, r#"[1, {"k": None}]"#),
        (
            "123456789012345678901234567890",
            "123456789012345678901234567890",
        ),
        (&format!("\"{}\"", "x".repeat(100)), "..."),
        (&format!("[{}]", ["0"; 50].join(",")), "[...]"),
    ] {
        let schema = format!(r#"{{"properties":{{"a":{{"default":{default}}}}}}}"#);
        assert_eq!(signature(&schema), format!("tool(a: Any = {expected})"));
    }
    // The default of a definition holds where the use of it has none.
    let referred = r##"{"properties":{"a":{"$ref":"#/$defs/N"}},"$defs":{"N":{"type":"integer","default":4}}}"##;
    assert_eq!(signature(referred), "tool(a: int = 4)");
}

#[test]
fn the_docstring_tells_all_there_is_to_know() {
    let function = function(
        r##"{"properties":{
            "query":{"type":"string","description":"What to\n  look for."},
            "from":{"type":["integer","null"],"default":0},
            "filter":{"$ref":"#/$defs/Filter","description":"Which to keep."},
            "size":{"enum":["a",{"b":1}]}},"required":["query"],
            "$defs":{"Filter":{"type":"object","description":"A filter.","properties":{
                "tags":{"type":"array","items":{"type":"string"},"description":"Any of these."},
                "author":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}},"required":["author"]}}}"##,
        Some(
            r#"{"type":"array","items":{"type":"object","properties":{"id":{"type":"integer","description":"Its number."}}}}"#,
        ),
    );
    let expected = "\
Finds things.

Second paragraph.

Args:
    query (str): What to look for.
    from_ (int | None, default 0) [sent as \"from\"]
    filter (dict, optional): Which to keep.
        \"tags\" (list[str], optional): Any of these.
        \"author\" (dict)
            \"name\" (str)
    size (str | dict, optional): One of \"a\", {\"b\": 1}.

Returns:
    list[dict]
        \"id\" (int, optional): Its number.";
    assert_eq!(
        function.docstring("tool", "  Finds things.\n\nSecond paragraph.\n"),
        expected
    );
    assert_eq!(function.return_shape, r#"[{"id"?: int}]"#);
}

#[test]
fn a_tool_without_a_word_still_has_a_docstring() {
    let function = function(r#"{"properties":{}}"#, None);
    assert_eq!(
        function.docstring("my.tool", " \n"),
        "Call the tool my.tool."
    );
    assert_eq!(function.docstring("t", "a\tb\u{1b}[0m\rc"), "a    b[0mc");
}

#[test]
fn a_result_that_says_nothing_is_left_out() {
    for output in ["true", "{}", r#"{"description":"Something."}"#] {
        let function = function(r#"{"properties":{}}"#, Some(output));
        assert_eq!(
            (
                function.signature().as_str(),
                function.return_shape.as_str()
            ),
            ("tool()", ""),
            "{output}"
        );
    }
}

#[test]
fn null_is_told_from_absent() {
    let function = function(
        r#"{"properties":{"a":{"type":"string"},"b":{"type":["string","null"]},"c":{},"d":{"enum":["x",null]},
            "e":{"anyOf":[{"type":"string"},{"type":"null"}]},"f":{"type":"string","nullable":true},"g":{"const":null}}}"#,
        None,
    );
    let nullable: Vec<bool> = function.parameters.iter().map(|p| p.nullable).collect();
    assert_eq!(nullable, [false, true, true, true, true, true, true]);
}
