use super::*;
use crate::json::parse;

fn type_of(schema: &str) -> String {
    let schema = parse(schema).unwrap_or_else(|e| panic!("{schema}: {e}"));
    Document::new(&schema).type_of(&schema)
}

fn shape(schema: &str) -> String {
    let schema = parse(schema).unwrap();
    Document::new(&schema).shape(&schema)
}

#[test]
fn types() {
    for (schema, expected) in [
        (r#"{"type":"string"}"#, "str"),
        (r#"{"type":"integer"}"#, "int"),
        (r#"{"type":"number"}"#, "float"),
        (r#"{"type":"boolean"}"#, "bool"),
        (r#"{"type":"null"}"#, "None"),
        (r#"{"type":"object"}"#, "dict"),
        (r#"{"type":"array"}"#, "list"),
        (r#"{"type":"banana"}"#, "Any"),
        (r#"{"type":5}"#, "Any"),
        ("{}", "Any"),
        ("true", "Any"),
        // Unions.
        (
            r#"{"type":["null","string","integer"]}"#,
            "str | int | None",
        ),
        (r#"{"type":"string","nullable":true}"#, "str | None"),
        (
            r#"{"anyOf":[{"type":"null"},{"type":"string"},{"type":"string","format":"date"}]}"#,
            "str | None",
        ),
        (
            r#"{"oneOf":[{"type":"array","items":{"type":"string"}},{"type":"string"}]}"#,
            "list[str] | str",
        ),
        (r#"{"anyOf":[{"type":"string"},{}]}"#, "Any"),
        (r#"{"anyOf":[]}"#, "Any"),
        (
            r#"{"type":"object","anyOf":[{"required":["a"]},{"required":["b"]}]}"#,
            "dict",
        ),
        (r#"{"allOf":[{"type":"string"},{"minLength":3}]}"#, "str"),
        (
            r#"{"allOf":[{"description":"x"},{"type":"integer"}]}"#,
            "int",
        ),
        // Containers.
        (
            r#"{"type":"array","items":{"type":["string","null"]}}"#,
            "list[str | None]",
        ),
        (r#"{"type":"array","items":[{"type":"string"}]}"#, "list"),
        (
            r#"{"type":"array","items":{"type":"array","items":{"type":"integer"}}}"#,
            "list[list[int]]",
        ),
        (
            r#"{"type":"object","additionalProperties":{"type":"integer"}}"#,
            "dict[str, int]",
        ),
        (r#"{"type":"object","additionalProperties":true}"#, "dict"),
        (
            r#"{"properties":{"a":{}},"additionalProperties":{"type":"integer"}}"#,
            "dict",
        ),
        // Enums.
        (r#"{"enum":["a","b"]}"#, r#"Literal["a", "b"]"#),
        (
            r#"{"type":"string","enum":["a",null]}"#,
            r#"Literal["a"] | None"#,
        ),
        (r#"{"enum":[1,true,"x"]}"#, r#"Literal[1, True, "x"]"#),
        (r#"{"enum":[[1],{"a":2}]}"#, "list | dict"),
        (r#"{"enum":[1.5,[]]}"#, "float | list"),
        (r#"{"enum":[]}"#, "Any"),
        (r#"{"enum":[null]}"#, "None"),
        (r#"{"const":"x"}"#, r#"Literal["x"]"#),
        // Said by other keywords only.
        (r#"{"properties":{}}"#, "dict"),
        (r#"{"items":{"type":"string"}}"#, "list[str]"),
        (r#"{"pattern":"^a"}"#, "str"),
        (r#"{"minimum":1}"#, "float"),
    ] {
        assert_eq!(type_of(schema), expected, "{schema}");
    }
}

#[test]
fn a_long_enum_gives_its_type_and_lists_its_values() {
    let values: Vec<String> = (0..60).map(|i| format!("\"value {i}\"")).collect();
    let schema = format!(
        r#"{{"description":"Which.","enum":[{}]}}"#,
        values.join(",")
    );
    assert_eq!(type_of(&schema), "str");
    let described = describe(&parse(&schema).unwrap());
    assert!(
        described.starts_with(r#"Which. One of "value 0", "value 1","#),
        "{described}"
    );
    assert!(described.ends_with(r#""value 59"."#), "{described}");
    assert_eq!(describe(&parse(r#"{"enum":["a"]}"#).unwrap()), "");
    let endless: Vec<String> = (0..9000).map(|i| i.to_string()).collect();
    let described = describe(&parse(&format!(r#"{{"enum":[{}]}}"#, endless.join(","))).unwrap());
    assert!(
        described.ends_with(", ....") && described.len() < 1100,
        "{described}"
    );
}

#[test]
fn references_are_followed() {
    for (schema, expected) in [
        (
            r##"{"$ref":"#/$defs/A","$defs":{"A":{"type":"integer"}}}"##,
            "int",
        ),
        (
            r##"{"items":{"$ref":"#/definitions/a~1b"},"definitions":{"a/b":{"type":"string"}}}"##,
            "list[str]",
        ),
        (
            r##"{"$ref":"#/anyOf/1","anyOf":[{"type":"string"},{"type":"integer"}]}"##,
            "int",
        ),
        (r##"{"$ref":"#/$defs/gone"}"##, "Any"),
        (r#"{"$ref":"https://example.com/schema"}"#, "Any"),
        (
            r##"{"$ref":"#/$defs/A","$defs":{"A":{"$ref":"#/$defs/B"},"B":{"$ref":"#/$defs/A"}}}"##,
            "Any",
        ),
    ] {
        assert_eq!(type_of(schema), expected, "{schema}");
    }
}

#[test]
fn circles_and_floods_end() {
    let tree = r##"{"$ref":"#/$defs/T","$defs":{"T":{"type":"object","properties":{
        "value":{"type":"integer"},"children":{"type":"array","items":{"$ref":"#/$defs/T"}}}}}}"##;
    assert_eq!(type_of(tree), "dict");
    assert!(
        shape(tree).starts_with(r#"{"value"?: int, "children"?: [{"value"?: int, "children"?: [{"#)
    );
    let parsed = parse(tree).unwrap();
    let outline = Document::new(&parsed).outline(&parsed);
    assert_eq!(
        outline[..2],
        [
            r#""value" (int, optional)"#,
            r#""children" (list[dict], optional)"#
        ]
    );
    assert!(outline.len() <= 10, "{outline:?}");

    let doubling = r##"{"$ref":"#/$defs/T","$defs":{"T":{"anyOf":[{"type":"array","items":{"$ref":"#/$defs/T"}},
        {"type":"object","additionalProperties":{"$ref":"#/$defs/T"}},{"type":"array","items":{"items":{"$ref":"#/$defs/T"}}}]}}}"##;
    for text in [type_of(doubling), shape(doubling)] {
        assert!(text.len() < 20_000, "{}", text.len());
    }
    let members: Vec<String> = (0..5000)
        .map(|i| format!(r#""m{i}":{{"type":"integer"}}"#))
        .collect();
    let wide = parse(&format!(r#"{{"properties":{{{}}}}}"#, members.join(","))).unwrap();
    assert_eq!(Document::new(&wide).outline(&wide).len(), 61);
    let deep = format!("{}{{}}{}", r#"{"items":"#.repeat(90), "}".repeat(90));
    assert_eq!(
        type_of(&deep),
        "list[list[list[list[list[list[list[Any]]]]]]]"
    );
}

#[test]
fn shapes() {
    for (schema, expected) in [
        (
            r#"{"properties":{"a":{"type":"string"},"b":{"type":["integer","null"]}},"required":["a"]}"#,
            r#"{"a": str, "b"?: int | None}"#,
        ),
        (
            r#"{"type":"array","items":{"properties":{"x\"y":{"type":"array","items":{"type":"string"}}}}}"#,
            r#"[{"x\"y"?: [str]}]"#,
        ),
        (r#"{"type":"string"}"#, "str"),
        ("true", "Any"),
        (
            r#"{"allOf":[{"properties":{"a":{"type":"string"}}},{"properties":{"b":{"type":"integer"}},"required":["a"]}]}"#,
            r#"{"a": str, "b"?: int}"#,
        ),
    ] {
        assert_eq!(shape(schema), expected, "{schema}");
    }
}

#[test]
fn strings_are_python_literals() {
    for (text, expected) in [
        ("plain", r#""plain""#),
        ("a\"b\\c\nd\te\rf", r#""a\"b\\c\nd\te\rf""#),
        ("\0\u{1b}\u{7f}\u{85}", r#""\x00\x1b\x7f\x85""#),
        ("ä日🚀", "\"ä日🚀\""),
        (
            "\u{2028}\u{202e}\u{feff}\u{e0041}",
            r#""\u2028\u202e\ufeff\U000e0041""#,
        ),
    ] {
        assert_eq!(python_string(text), expected);
    }
}
